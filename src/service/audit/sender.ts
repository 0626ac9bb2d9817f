/**
 * Sends the audit trail and its signed heads to one destination: everything once, in order, from a position that is
 * stored. It reads from the database batch by batch, so that nothing waits for a destination, and a destination that is
 * away for long costs no memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import {
  type AuditPosition,
  findAuditHash,
  findLastSeq,
  findPosition,
  listAuditEntries,
  listHeads,
  setPosition,
} from '../../store/audit/audit.ts';
import type { Store } from '../../store/engine/index.ts';
import { type AuditMessage, type Batch, mostMessages, nextBatch } from './messages.ts';

export interface Destination {
  /** For the log and the stored position: `file:/path`, `tls://host:6514`. */
  name: string;
  /** The last entry and the last head that it has, where it can say: after a crash it has more than the position says. */
  last?(): Promise<Pick<AuditMessage, 'kind' | 'seq' | 'hash'>[]>;
  /**
   * Resolves once all have arrived; rejects where it is not known how many did, and with a `RefusedError` where none was
   * accepted for what it says. Takes no longer than a limit of its own.
   */
  send(messages: readonly AuditMessage[]): Promise<void>;
  /** Numbers of entries that it is never sent. */
  skip?: ReadonlySet<number>;
  close(): void;
}

/** The receiver is there, and does not want what it was sent. */
export class RefusedError extends Error {}

/** The receiver asks for a while without attempts. */
export class BusyError extends Error {
  readonly waitMs: number;

  constructor(message: string, waitMs: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** Why a destination does not get what it should. */
export interface DestinationFault {
  /** The destination. */
  name: string;
  /** In ms since 1970. */
  since: number;
  nextAt: number;
  message: string;
  /** The number of the entry or head that is refused for what it says, where that is it. */
  refused?: number;
}

const pollMs = 1_000;
const retryMaxMs = 60_000;
/** A receiver may ask for more than that, but not for a day. */
const waitMaxMs = 600_000;

/** Sends from now on, until stopped. */
export class Sender {
  readonly #store: Store;
  readonly #destination: Destination;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #stopped = false;
  #position: AuditPosition | undefined;
  /** Fewer after a refusal, until it is known which message is refused. */
  #most = mostMessages;
  #failures = 0;
  #fault: DestinationFault | undefined;
  /** What was logged last of the destination; undefined: nothing yet. */
  #said: string | undefined;

  constructor(store: Store, destination: Destination, { log, now }: { log: Logger; now(): number }) {
    this.#store = store;
    this.#destination = destination;
    this.#log = log;
    this.#now = now;
    this.#running = this.#run();
  }

  /** Undefined while it works, or has failed only once. */
  fault(): DestinationFault | undefined {
    return this.#failures > 1 || this.#fault?.refused !== undefined ? this.#fault : undefined;
  }

  /** Sends what there is, for as long as `limitMs`, and ends. */
  async stop(limitMs: number): Promise<void> {
    this.#stopping.abort();
    await Promise.race([this.#running, sleep(limitMs, undefined, { ref: false })]);
    this.#stopped = true;
    this.#destination.close();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      let batch: Batch | undefined;
      try {
        batch = await this.#next();
        if (batch) await this.#send(batch);
        if (batch || this.#failures > 0) this.#working();
        if (batch?.isFull) continue;
        if (!batch && this.#stopping.signal.aborted) return;
        // What comes meanwhile goes together.
        await this.#pause(pollMs);
      } catch (error) {
        if (this.#stopped) return;
        const pauseMs = this.#failed(error, batch);
        if (pauseMs === 0) continue;
        if (this.#stopping.signal.aborted) return;
        await this.#pause(pauseMs);
      }
    }
  }

  async #next(): Promise<Batch | undefined> {
    const { read } = this.#store;
    this.#position ??= await firstPosition(this.#store, this.#destination, this.#log);
    const { entry } = this.#position;
    const batch = await nextBatch(read, this.#position, this.#most);
    this.#log.debug('audit.sending', {
      destination: this.#destination.name,
      waiting: (await findLastSeq(read)) - entry,
      oldestAt: batch?.messages.find(({ kind }) => kind === 'entry')?.at,
    });
    return batch;
  }

  async #send({ messages, end }: Batch): Promise<void> {
    const { name, skip } = this.#destination;
    const wanted = messages.filter(({ seq }) => !skip?.has(seq));
    for (const { kind, seq, hash } of messages.filter(({ seq }) => skip?.has(seq)))
      this.#log.warn('audit.message.skipped', { destination: name, kind, seq, hash });
    // Entries of sessions are written without waiting for the disk. Flush: nothing is sent that a power cut can take back.
    await this.#store.write(async () => {});
    if (wanted.length > 0) await this.#destination.send(wanted);
    this.#position = end;
    await setPosition(this.#store, name, end);
    this.#most = Math.min(this.#most * 2, mostMessages);
  }

  /** Returns how long to wait before the next attempt. */
  #failed(error: unknown, batch: Batch | undefined): number {
    const { name } = this.#destination;
    const { messages = [] } = batch ?? {};
    const [first] = messages;
    const isRefusal = error instanceof RefusedError;
    if (isRefusal && messages.length > 1) {
      // Halves, until it is alone: those before it arrive.
      this.#most = Math.ceil(messages.length / 2);
      return 0;
    }
    this.#log.debug('audit.attempt.failed', { destination: name });
    if (isRefusal && first) {
      const { kind, seq, hash } = first;
      this.#say(`refused ${kind} ${seq}`, () =>
        this.#log.error('audit.message.refused', {
          destination: name,
          kind,
          seq,
          hash,
          error: messageOf(error),
          message: `Nothing behind it is sent until ${name} accepts it. To leave it out, add ${seq} to audit.webhook.skip and reload.`,
        }),
      );
    } else {
      this.#say('failed', () =>
        this.#log.error('audit.destination.failed', { destination: name, error: messageOf(error) }),
      );
    }
    if (this.#destination.last) this.#position = undefined;
    const wasKnown = this.fault() !== undefined;
    this.#failures += 1;
    const retryMs = retryDelay(this.#failures, Math.random(), retryMaxMs);
    const waitMs =
      error instanceof BusyError ? Math.min(Math.max(retryMs, error.waitMs), waitMaxMs) : retryMs;
    this.#fault = {
      name,
      since: this.#fault?.since ?? this.#now(),
      nextAt: this.#now() + waitMs,
      message: messageOf(error),
      ...(isRefusal && first && { refused: first.seq }),
    };
    if (!wasKnown && this.fault()) this.#announce();
    return waitMs;
  }

  #working(): void {
    const wasKnown = this.fault() !== undefined;
    this.#failures = 0;
    this.#fault = undefined;
    if (wasKnown) this.#announce();
    this.#say('working', () =>
      this.#log.info('audit.destination.working', { destination: this.#destination.name }),
    );
  }

  /** Updates pages that show faults. If this write fails, they show the fault of the database. */
  #announce(): void {
    this.#store.write(async ({ changed }) => changed({ kind: 'service' })).catch(() => {});
  }

  /** Once, and not at every attempt. */
  #say(state: string, write: () => void): void {
    if (this.#said !== state) write();
    this.#said = state;
  }

  async #pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {});
  }
}

/** The stored position, or behind what the destination says that it has. */
async function firstPosition(store: Store, destination: Destination, log: Logger): Promise<AuditPosition> {
  const position = await findPosition(store.read, destination.name);
  await requireSame(store, destination, position, log);
  for (const { kind, seq, hash } of (await destination.last?.()) ?? []) {
    const [known] =
      kind === 'entry'
        ? await listAuditEntries(store.read, {}, { after: seq - 1, limit: 1 })
        : await listHeads(store.read, { after: seq - 1, limit: 1 });
    // After a restore, another entry may have that number.
    const isOurs = known?.seq === seq && known.hash === hash;
    if (!isOurs || seq < position[kind]) continue;
    position[kind] = seq;
    if (kind === 'entry') position.hash = hash;
  }
  return position;
}

/** Says where the last entry that was sent is another one by now. Entries that retention deleted say nothing. */
async function requireSame(
  store: Store,
  { name }: Destination,
  position: AuditPosition,
  log: Logger,
): Promise<void> {
  const { entry: seq, hash } = position;
  const last = await findLastSeq(store.read);
  const found = await findAuditHash(store.read, seq);
  const isOther = hash !== '' && found !== undefined && found !== hash;
  if (!isOther && seq <= last) return;
  const message = isOther
    ? `Entry ${seq} is not the one that was sent. \`andromeda admin audit verify\` says whether the trail was changed.`
    : `The trail ends at ${last}, and ${seq} was sent. It goes on from its end.`;
  log.error('audit.destination.diverged', { destination: name, seq, message });
  position.entry = Math.min(seq, last);
}

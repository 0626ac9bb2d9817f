/**
 * Sends the audit trail and its signed heads to one destination: everything once, in order, from a position that is
 * stored. It reads from the database page by page, so that nothing waits for a destination, and a destination that is
 * away for long costs no memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SignedHead } from '../domain/audit-head.ts';
import { messageOf } from '../lib/error-message.ts';
import type { Logger } from '../lib/log.ts';
import { type AuditListing, findLastSeq, listAuditEntries } from '../store/audit.ts';
import { type AuditPosition, findPosition, listHeads, setPosition } from '../store/audit-heads.ts';
import type { Store } from '../store/index.ts';

/** What is sent, as one line of JSON in ASCII. */
export type AuditMessage = { kind: 'entry' | 'head'; seq: number; hash: string; at: string; json: string };

export interface Destination {
  /** For the log and the stored position: `file:/path`, `tls://host:6514`. */
  name: string;
  /** The last entry and the last head that it has, where it can say: after a crash it has more than the position says. */
  last?(): Promise<Pick<AuditMessage, 'kind' | 'seq' | 'hash'>[]>;
  /** Resolves once all are handed over; rejects where it is not known how many were. */
  send(messages: readonly AuditMessage[]): Promise<void>;
  close(): void;
}

export interface Sender {
  /** Sends what there is, for as long as `limitMs`, and ends. */
  stop(limitMs: number): Promise<void>;
}

const pageSize = 100;
const pollMs = 1_000;
const retryMs = 1_000;
const retryMaxMs = 60_000;

/** Starts to send, and goes on until stopped. */
export function startSender(store: Store, destination: Destination, log: Logger): Sender {
  const { name } = destination;
  const stopping = new AbortController();
  let isFailing: boolean | undefined;
  let stopped = false;

  function report(failed: boolean, error?: unknown): void {
    if (failed === isFailing) return;
    if (failed) log.error('audit.destination.failed', { destination: name, error: messageOf(error) });
    else log.info('audit.destination.working', { destination: name });
    isFailing = failed;
  }

  async function run(): Promise<void> {
    let pauseMs = retryMs;
    let position: AuditPosition | undefined;
    while (!stopped) {
      try {
        position ??= await firstPosition(store, destination);
        const waiting = (await findLastSeq(store.read)) - position.entry;
        log.debug('audit.sending', { destination: name, waiting });
        const sent = await sendPage(store, destination, position);
        if (sent || isFailing) report(false);
        pauseMs = retryMs;
        if (sent) {
          position = sent;
          await setPosition(store, name, sent);
        } else if (stopping.signal.aborted) return;
        else await pause(pollMs);
      } catch (error) {
        if (stopped) return;
        report(true, error);
        if (stopping.signal.aborted) return;
        if (destination.last) position = undefined;
        await pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, retryMaxMs);
      }
    }
  }

  async function pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
  }

  const running = run();
  return {
    async stop(limitMs) {
      stopping.abort();
      await Promise.race([running, sleep(limitMs, undefined, { ref: false })]);
      stopped = true;
      destination.close();
    },
  };
}

/** The stored position, or behind what the destination says that it has. */
async function firstPosition(store: Store, destination: Destination): Promise<AuditPosition> {
  const position = await findPosition(store.read, destination.name);
  for (const { kind, seq, hash } of (await destination.last?.()) ?? []) {
    const [known] =
      kind === 'entry'
        ? await listAuditEntries(store.read, {}, { after: seq - 1, limit: 1 })
        : await listHeads(store.read, { after: seq - 1, limit: 1 });
    // After a restore, another entry may have that number.
    const isOurs = known?.seq === seq && known.hash === hash;
    if (isOurs) position[kind] = Math.max(position[kind], seq);
  }
  return position;
}

/** Sends what follows a position; returns the new one, or undefined when there was nothing. */
async function sendPage(
  store: Store,
  destination: Destination,
  position: AuditPosition,
): Promise<AuditPosition | undefined> {
  const entries = await listAuditEntries(store.read, {}, { after: position.entry, limit: pageSize });
  const heads = await listHeads(store.read, { after: position.head, limit: pageSize });
  const entry = entries.at(-1)?.seq ?? position.entry;
  // A head follows the entries that it covers.
  const covered = heads.filter(({ seq }) => seq <= entry);
  if (entries.length + covered.length === 0) return undefined;
  await destination.send([...entries.map(entryMessage), ...covered.map(headMessage)]);
  return { entry, head: covered.at(-1)?.seq ?? position.head };
}

function entryMessage(entry: AuditListing): AuditMessage {
  return message('entry', entry);
}

function headMessage(head: SignedHead): AuditMessage {
  return message('head', head);
}

function message(
  kind: AuditMessage['kind'],
  fields: { seq: number; hash: string; at: string },
): AuditMessage {
  const { seq, hash, at } = fields;
  const known = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  return { kind, seq, hash, at, json: toAscii(JSON.stringify({ kind, ...known })) };
}

/** JSON whose strings hold nothing that a terminal or a collector could take for something else. */
function toAscii(json: string): string {
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

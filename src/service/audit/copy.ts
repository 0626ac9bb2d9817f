/**
 * The audit trail and its signed heads in a file, a line of JSON each: everything once and in order, from a position that is
 * stored. It reads from the database batch by batch, so that no write waits for the file.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import {
  type AuditPosition,
  findLastSeq,
  findPosition,
  listAuditEntries,
  listHeads,
  setPosition,
} from '../../store/audit/audit.ts';
import type { Store } from '../../store/engine/index.ts';
import { type FileOptions, openLines } from './file.ts';
import { nextBatch } from './messages.ts';

export interface AuditFault {
  since: number;
  message: string;
}

const everyMs = 1_000;
const stopMs = 500;

export class Copy {
  readonly #store: Store;
  readonly #path: string;
  readonly #file: ReturnType<typeof openLines>;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #rounds: Rounds;
  #position: AuditPosition | undefined;
  #fault: AuditFault | undefined;
  #isWorking = false;

  constructor(store: Store, options: FileOptions, { log, now }: { log: Logger; now(): number }) {
    this.#store = store;
    this.#path = options.path;
    this.#file = openLines(options);
    this.#log = log;
    this.#now = now;
    const onFault = (error: unknown) => this.#failed(error);
    this.#rounds = startRounds((stopping) => this.#copy(stopping), { everyMs, onFault });
  }

  /** Why the file does not get what it should. */
  get fault(): AuditFault | undefined {
    return this.#fault;
  }

  /** Ends within half a second; with `last`, it writes what is left first. */
  async stop(last: boolean): Promise<void> {
    const finish = async () => {
      await this.#rounds.stop();
      if (last) await this.#copy(AbortSignal.timeout(stopMs)).catch((error) => this.#failed(error));
    };
    await Promise.race([finish(), sleep(stopMs, undefined, { ref: false })]);
    this.#file.close();
  }

  async #copy(stopping: AbortSignal): Promise<void> {
    this.#position ??= await this.#firstPosition();
    while (!stopping.aborted) {
      const batch = await nextBatch(this.#store.read, this.#position);
      if (!batch) break;
      // Entries of sessions are written without waiting for the disk. Flush: nothing is copied that a power cut can take back.
      await this.#store.write(async () => {});
      await this.#file.append(batch.lines);
      this.#position = batch.end;
      await setPosition(this.#store, this.#path, batch.end);
    }
    if (!this.#isWorking) this.#log.info('audit.file.working', { file: this.#path });
    this.#isWorking = true;
    if (this.#fault) this.#announce();
    this.#fault = undefined;
  }

  /** The stored position, or behind what the file ends with: after a crash it has more than the position says. */
  async #firstPosition(): Promise<AuditPosition> {
    const { read } = this.#store;
    const { entry, head } = await findPosition(read, this.#path);
    const position = { entry: Math.min(entry, await findLastSeq(read)), head };
    for (const { kind, seq, hash } of await this.#file.last()) {
      const page = { after: seq - 1, limit: 1 };
      const [known] = await (kind === 'entry' ? listAuditEntries(read, {}, page) : listHeads(read, page));
      // After a restore, another entry may have that number.
      if (known?.seq === seq && known.hash === hash) position[kind] = Math.max(position[kind], seq);
    }
    return position;
  }

  #failed(error: unknown): void {
    const message = messageOf(error);
    // Once, and not at each attempt.
    if (!this.#fault) this.#log.error('audit.file.failed', { file: this.#path, error: message });
    if (!this.#fault) this.#announce();
    this.#fault = { since: this.#fault?.since ?? this.#now(), message };
    this.#isWorking = false;
    this.#position = undefined;
  }

  /** Updates pages that show faults. If this write fails, they show the fault of the database. */
  #announce(): void {
    this.#store.write(async ({ changed }) => changed({ kind: 'service' })).catch(() => {});
  }
}

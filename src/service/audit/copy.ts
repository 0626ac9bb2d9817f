/**
 * The audit trail and its signed heads in a file, a line of JSON each: everything once and in order, from a position that is
 * stored. It reads from the database batch by batch, so that no write waits for the file.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
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

/** Why the file does not get what it should. */
export interface CopyFault {
  path: string;
  /** In ms since 1970. */
  since: number;
  message: string;
}

export interface Copy {
  fault(): CopyFault | undefined;
  /** Ends within half a second; with `last`, it writes what is left first. */
  stop(last: boolean): Promise<void>;
}

const everyMs = 1_000;
const stopMs = 500;

/** Copies from now on, until stopped. */
export function startCopy(
  store: Store,
  options: FileOptions,
  { log, now }: { log: Logger; now(): number },
): Copy {
  const { path } = options;
  const file = openLines(options);
  let position: AuditPosition | undefined;
  let fault: CopyFault | undefined;
  let isWorking = false;

  async function copy(stopping: AbortSignal): Promise<void> {
    position ??= await firstPosition();
    while (!stopping.aborted) {
      const batch = await nextBatch(store.read, position);
      if (!batch) break;
      // Entries of sessions are written without waiting for the disk. Flush: nothing is copied that a power cut can take back.
      await store.write(async () => {});
      await file.append(batch.lines);
      position = batch.end;
      await setPosition(store, path, position);
    }
    if (!isWorking) log.info('audit.file.working', { file: path });
    isWorking = true;
    if (fault) announce();
    fault = undefined;
  }

  /** The stored position, or behind what the file ends with: after a crash it has more than the position says. */
  async function firstPosition(): Promise<AuditPosition> {
    const { entry, head } = await findPosition(store.read, path);
    const found = { entry: Math.min(entry, await findLastSeq(store.read)), head };
    for (const { kind, seq, hash } of await file.last()) {
      const page = { after: seq - 1, limit: 1 };
      const list = kind === 'entry' ? listAuditEntries(store.read, {}, page) : listHeads(store.read, page);
      const [known] = await list;
      // After a restore, another entry may have that number.
      if (known?.seq === seq && known.hash === hash) found[kind] = Math.max(found[kind], seq);
    }
    return found;
  }

  function failed(error: unknown): void {
    const message = messageOf(error);
    // Once, and not at each attempt.
    if (!fault) log.error('audit.file.failed', { file: path, error: message });
    if (!fault) announce();
    fault = { path, since: fault?.since ?? now(), message };
    isWorking = false;
    position = undefined;
  }

  /** Updates pages that show faults. If this write fails, they show the fault of the database. */
  function announce(): void {
    store.write(async ({ changed }) => changed({ kind: 'service' })).catch(() => {});
  }

  const rounds = startRounds(copy, { everyMs, onFault: failed });
  async function finish(last: boolean): Promise<void> {
    await rounds.stop();
    if (last) await copy(AbortSignal.timeout(stopMs)).catch(failed);
  }
  return {
    fault: () => fault,
    async stop(last) {
      await Promise.race([finish(last), sleep(stopMs, undefined, { ref: false })]);
      file.close();
    },
  };
}

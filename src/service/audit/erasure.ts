/** Removes erased people from stored results and the audit trail, in small parts; the next start continues after a stop. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditKey } from '../../domain/audit/audit.ts';
import { createEraser } from '../../domain/people/erasure.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import type { AuditListing } from '../../store/audit/audit.ts';
import {
  dropErasureNames,
  endErasure,
  eraseTexts,
  findErasure,
  setErasurePosition,
  textTables,
} from '../../store/audit/erasure.ts';
import { redactEntries } from '../../store/audit/retention.ts';
import type { Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';

export interface ErasureDeps {
  store: Store;
  key(): AuditKey;
  log: Logger;
  now(): number;
}

const retryMs = 60_000;

/** Its `wake` is called when there may be a person to erase. */
export function startErasures(deps: ErasureDeps): Rounds {
  return startRounds((stopping) => eraseAll(deps, stopping), {
    // Retried: the disk may have been full, or a reader may have held the log.
    everyMs: retryMs,
    onFault: (error) => deps.log.error('erasure.failed', { error: messageOf(error) }),
  });
}

async function eraseAll({ store, key, log, now }: ErasureDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    const erasure = await findErasure(store.read);
    if (!erasure || signal.aborted) return;
    const { names, untilSeq: until, nextSeq } = erasure;
    for (const table of textTables)
      await inParts<string | number | null>(null, (after) => eraseTexts(store, table, names, after), signal);
    const redact = createEraser(names);
    const sign = (previous: string, entry: AuditListing) =>
      key().signRedaction(previous, entry, toTime(now()));
    const redactSome = async (after: number) => {
      const next = await redactEntries(store, { after, until, redact, sign });
      if (next !== undefined && !signal.aborted) await setErasurePosition(store, names.userId, next);
      return next;
    };
    await inParts(nextSeq, redactSome, signal);
    if (signal.aborted) return;
    await dropErasureNames(store, names.userId);
    if (!(await store.emptyLog()))
      throw new Error(
        'The database is being read, and its log still has the names of a person who was erased.',
      );
    await endErasure(store, names.userId);
    log.info('erasure.done', { userId: names.userId });
  }
}

/** Pause between parts, so that other writers get their turn. */
const pauseMs = 2;

/** Does work in parts, each from the end of the one before, until no part is left or `signal` aborts. */
export async function inParts<T>(
  first: T,
  part: (from: T) => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<void> {
  let from: T | undefined = first;
  while (from !== undefined && from !== false && !signal.aborted) {
    from = await part(from);
    await pause(signal);
  }
}

export async function pause(signal: AbortSignal): Promise<void> {
  await sleep(pauseMs, undefined, { signal }).catch(() => {});
}

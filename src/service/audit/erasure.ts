/** Takes erased people out of stored results and the audit trail, in small parts; what a stop leaves, the next start does. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditKey } from '../../domain/audit/key.ts';
import { createEraser } from '../../domain/people/erasure.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import {
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
  key: AuditKey;
  log: Logger;
  now(): number;
}

export interface Erasures {
  /** There may be a person to erase. */
  nudge(): void;
  stop(): Promise<void>;
}

/** Between parts, so that others get their turn. */
const pauseMs = 2;
const retryMs = 60_000;

export function startErasures(deps: ErasureDeps): Erasures {
  const stopping = new AbortController();
  let running = Promise.resolve();
  const nudge = () => {
    running = running
      .then(() => eraseAll(deps, stopping.signal))
      .catch((error: unknown) => deps.log.error('erasure.failed', { error: messageOf(error) }));
  };
  // The disk may have been full.
  const timer = setInterval(nudge, retryMs).unref();
  nudge();
  return {
    nudge,
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

async function eraseAll({ store, key, log, now }: ErasureDeps, signal: AbortSignal): Promise<void> {
  const pause = () => sleep(pauseMs, undefined, { signal }).catch(() => {});
  for (;;) {
    const erasure = await findErasure(store.read);
    if (!erasure || signal.aborted) return;
    const { names, untilSeq: until } = erasure;
    for (const table of textTables)
      for (let last = await eraseTexts(store, table, names, undefined); last !== undefined; ) {
        if (signal.aborted) return;
        await pause();
        last = await eraseTexts(store, table, names, last);
      }
    const redact = createEraser(names);
    for (let after: number | undefined = erasure.nextSeq; after !== undefined; ) {
      after = await redactEntries(store, {
        after,
        until,
        redact,
        sign: (previous, entry) => key.signRedaction(previous, entry, toTime(now())),
      });
      if (signal.aborted) return;
      if (after !== undefined) await setErasurePosition(store, names.userId, after);
      await pause();
    }
    await endErasure(store, names.userId);
    log.info('erasure.done', { userId: names.userId });
  }
}

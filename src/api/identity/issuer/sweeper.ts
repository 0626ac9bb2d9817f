/** Deletes expired records and expired rate-limit counts, in small batches so that other writes do not wait long. */
import type { Logger } from '../../../lib/log.ts';
import type { Store } from '../../../store/engine/index.ts';
import { deleteExpiredIssuerRecords } from '../../../store/people/issuer-records.ts';
import { deleteExpiredCounts } from '../../../store/servers/limit-counts.ts';

import { librarySeconds } from './adapter.ts';

const everyMs = 5 * 60_000;
const batch = 200;

/** Starts now; `stop` resolves when nothing runs any more. */
export function startSweeper({ store, log }: { store: Store; log: Logger }): {
  stop(): Promise<void>;
} {
  let isStopped = false;
  let running: Promise<void> = Promise.resolve();
  const sweep = async () => {
    for (;;) {
      if (isStopped) return;
      const removed = await store.write(async (tx) =>
        Math.max(
          await deleteExpiredIssuerRecords(tx, librarySeconds(), batch),
          await deleteExpiredCounts(tx, batch),
        ),
      );
      if (removed < batch) return;
    }
  };
  const start = () => {
    running = running.then(sweep).catch((error) => log.error('issuer.sweep.failed', { error }));
  };
  const timer = setInterval(start, everyMs);
  timer.unref();
  start();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await running;
    },
  };
}

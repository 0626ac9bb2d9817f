/** How many writes there are in a second where people do not pause, by way of HAProxy and all three servers. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterLab } from './lab.ts';
import type { Line } from './trial.ts';
import { startWrites } from './writes.ts';

const warmMs = 3_000;

export async function measureWrites(lab: ClusterLab, ms: number): Promise<Line[]> {
  const writes = startWrites(lab.business, lab.writers, 0);
  await sleep(warmMs);
  const [before, began] = [writes.ledger.answers, performance.now()];
  await sleep(ms);
  const rate = (writes.ledger.answers - before) / ((performance.now() - began) / 1_000);
  await writes.stop();
  const what = `writes a second, of ${lab.writers.length} people without a pause`;
  return [{ trial: 'capacity', what, found: rate.toFixed(0), limit: '', holds: true }];
}

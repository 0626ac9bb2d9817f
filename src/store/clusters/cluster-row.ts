/** Updates a cluster's row. Each update raises the row's version and sets its time. */
import type { Tx } from '../engine/index.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

type Counter = 'desired_generation' | 'scheduler_generation' | 'version_generation' | 'lifecycle_version';

/** `raised`: counters to increment. `from`: updates only in one of these states. Returns whether it updated the row. */
export async function updateCluster(
  tx: Tx,
  clusterId: string,
  change: Partial<Schema['clusters']>,
  { raised = [], from }: { raised?: readonly Counter[]; from?: readonly Schema['clusters']['state'][] } = {},
): Promise<boolean> {
  let query = tx.db
    .updateTable('clusters')
    .set({ ...change, updated_at: toTime(tx.now) })
    .where('id', '=', clusterId);
  for (const counter of ['version', ...raised] as const)
    query = query.set(counter, (eb) => eb(counter, '+', 1));
  if (from) query = query.where('state', 'in', from);
  return (await query.executeTakeFirstOrThrow()).numUpdatedRows > 0n;
}

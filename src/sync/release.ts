/** The release of one side of a cluster; the cluster is released when nothing of ours is left on any side. */

import type { Cluster } from '../domain/cluster.ts';
import type { Side } from '../domain/side.ts';
import { messageOf } from '../lib/error-message.ts';
import { isCleanedUp, recordCleanup } from '../store/cluster-sides.ts';
import { completeRelease, recordCleanupFailure } from '../store/clusters.ts';
import type { Tx } from '../store/index.ts';
import { deleteObservedAccounts } from '../store/observations.ts';
import type { KubernetesDriver, SlurmDriver } from './driver.ts';
import { atMost, isStopping, type PassDeps } from './pass.ts';

const releaseLimitMs = 3_600_000;

/**
 * Returns whether something was done. Throws when something is left; the message is stored, for operators to see. May be
 * called again.
 */
export async function releaseSide(
  { store, recheckSessions }: PassDeps,
  cluster: Cluster,
  side: Side,
  openDriver: (cluster: Cluster) => Promise<SlurmDriver | KubernetesDriver>,
  signal: AbortSignal,
): Promise<boolean> {
  if (await isCleanedUp(store.read, cluster.id, side)) return false;
  const keep = async (tx: Tx, cleanup: string) => {
    const whole = await recordCleanup(tx, cluster, side, cleanup);
    if (whole === 'done') await completeRelease(tx, cluster.id);
    else await recordCleanupFailure(tx, cluster.id, whole);
  };
  try {
    const driver = await openDriver(cluster);
    if (side === 'slurm') await recheckSessions?.(cluster.id);
    await driver.release(atMost(signal, releaseLimitMs));
  } catch (error) {
    if (!isStopping(signal)) await store.write((tx) => keep(tx, messageOf(error)));
    throw error;
  }
  if (side === 'slurm') await deleteObservedAccounts(store, cluster.id);
  await store.write((tx) => keep(tx, 'done'));
  return true;
}

/** A pass over the Kubernetes side of a cluster: people's permissions, and how the cluster is, side by side. */

import type { Cluster } from '../domain/cluster.ts';
import { recordApplyFailure, recordLookFailure } from '../store/cluster-sides.ts';
import { activateCluster } from '../store/clusters.ts';
import { findKubernetesAccess, findNextExpiry } from '../store/kubernetes-access.ts';
import { recordKubernetesReport } from '../store/observations.ts';
import type { KubernetesDriver, KubernetesOutcome } from './driver.ts';
import { atMost, isStopping, observeLimitMs, type PassDeps, type PassResult, wordsOf } from './pass.ts';

/** A thousand permissions are a few seconds' work; what is left then is the next pass's. */
const applyLimitMs = 300_000;

export async function passKubernetes(
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<KubernetesDriver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, admission, subjectIssuer, now } = deps;
  const { id } = cluster;
  const [wakeAt, access] = await admission(() =>
    // One moment for both: what ends after it ends with another pass.
    Promise.resolve(now()).then((moment) =>
      Promise.all([
        findNextExpiry(store.read, id, moment),
        findKubernetesAccess(store.read, cluster, subjectIssuer, moment),
      ]),
    ),
  );
  const driver = await openDriver(cluster);
  const applying = driver.apply(access, atMost(signal, applyLimitMs)).catch((error): KubernetesOutcome => {
    if (isStopping(signal)) throw error;
    return {
      failure: `People's permissions could not be changed: ${wordsOf(error)}`,
      retry: true,
      bound: undefined,
    };
  });
  const looking = look(deps, cluster, driver, signal);
  const [applied, looked] = await Promise.allSettled([applying, looking]);
  if (isStopping(signal)) throw signal.reason;
  if (looked.status === 'rejected') throw looked.reason;
  if (applied.status === 'rejected') throw applied.reason;
  const { failure, retry, bound } = applied.value;
  await recordApplyFailure(store, id, 'kubernetes', failure, bound);
  const { activated, failure: fault } = looked.value;
  const words = [fault, failure].filter((text) => text !== null).join(' ') || null;
  return { generation: 0, applied: false, activated, failure: words, wakeAt, retry };
}

/** A failed look is recorded at once: until the next good one, the API is not known to be ready. */
async function look(
  { store, admission, now }: PassDeps,
  cluster: Cluster,
  driver: KubernetesDriver,
  signal: AbortSignal,
): Promise<{ activated: boolean; failure: string | null }> {
  const report = await driver.observe(atMost(signal, observeLimitMs)).catch(async (error) => {
    if (!isStopping(signal)) {
      await recordLookFailure(store, cluster.id, 'kubernetes', wordsOf(error), now());
    }
    throw error;
  });
  const activated = await admission(async () => {
    const { desiredGeneration } = cluster;
    await recordKubernetesReport(store, cluster.id, { ...report, desiredGeneration }, now());
    if (cluster.state !== 'provisioning' || !report.controlPlaneReady) return false;
    return store.write((tx) => activateCluster(tx, cluster.id, now()));
  });
  return { activated, failure: report.failure };
}

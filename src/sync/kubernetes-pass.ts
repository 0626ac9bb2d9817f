/** A pass over the Kubernetes side of a cluster: people's permissions, and how the cluster is, side by side. */

import type { Cluster } from '../domain/cluster.ts';
import { recordApplyFailure, recordLookFailure } from '../store/cluster-sides.ts';
import { activateCluster } from '../store/clusters.ts';
import { findKubernetesAccess, findNextExpiry } from '../store/kubernetes-access.ts';
import { recordKubernetesReport } from '../store/observations.ts';
import type { KubernetesDriver, KubernetesOutcome } from './driver.ts';
import { atMost, isStopping, messageOf, observeLimitMs, type PassDeps, type PassResult } from './pass.ts';

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
      failure: `People's permissions could not be changed: ${messageOf(error)}`,
      retry: true,
      bound: undefined,
    };
  });
  const observing = observe(deps, cluster, driver, signal);
  const [applied, observed] = await Promise.allSettled([applying, observing]);
  if (isStopping(signal)) throw signal.reason;
  if (observed.status === 'rejected') throw observed.reason;
  if (applied.status === 'rejected') throw applied.reason;
  const { failure, retry, bound } = applied.value;
  await recordApplyFailure(store, id, 'kubernetes', failure, bound);
  const { activated, failure: fault } = observed.value;
  const message = [fault, failure].filter((text) => text !== null).join(' ') || null;
  return { generation: 0, applied: false, activated, failure: message, wakeAt, retry };
}

/** A failed observation is recorded at once: until the next good one, the API is not known to be ready. */
async function observe(
  { store, admission, now }: PassDeps,
  cluster: Cluster,
  driver: KubernetesDriver,
  signal: AbortSignal,
): Promise<{ activated: boolean; failure: string | null }> {
  const report = await driver.observe(atMost(signal, observeLimitMs)).catch(async (error) => {
    if (!isStopping(signal)) {
      await recordLookFailure(store, cluster.id, 'kubernetes', messageOf(error), now());
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

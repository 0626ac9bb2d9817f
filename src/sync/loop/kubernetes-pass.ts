/** A pass over the Kubernetes side of a cluster: people's permissions, and how the cluster is, side by side. */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { messageOf } from '../../lib/error-message.ts';
import { findKubernetesAccess, findNextExpiry } from '../../store/access/kubernetes-access.ts';
import { recordApplyFailure } from '../../store/clusters/cluster-sides.ts';
import { recordKubernetesReport } from '../../store/clusters/observations.ts';
import type { KubernetesDriver, KubernetesOutcome } from '../driver.ts';
import { atMost, isStopping, observeSide, type PassDeps, type PassResult } from './pass.ts';

/** A thousand permissions take a few seconds; the next pass does what is left after this time. */
const applyLimitMs = 300_000;

export async function passKubernetes(
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<KubernetesDriver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, admission, subjectIssuer, now } = deps;
  const { id } = cluster;
  // Both queries use the same time: a grant that ends between them would be missed by this pass and by `wakeAt`.
  const plan = (moment: number) =>
    Promise.all([
      findNextExpiry(store.read, id, moment),
      findKubernetesAccess(store, cluster, subjectIssuer, moment),
    ]);
  const [wakeAt, access] = await admission(async () => plan(now()));
  const driver = await openDriver(cluster);
  const applying = driver.apply(access, atMost(signal, applyLimitMs)).catch((error): KubernetesOutcome => {
    if (isStopping(signal)) throw error;
    return {
      failure: `People's permissions could not be changed: ${messageOf(error)}`,
      retry: true,
      bound: undefined,
    };
  });
  const { desiredGeneration } = cluster;
  const record = (report: KubernetesSideReport) =>
    recordKubernetesReport(store, id, { ...report, desiredGeneration });
  const observing = observeSide(deps, cluster, { side: 'kubernetes', driver, record }, signal);
  const [applied, observed] = await Promise.allSettled([applying, observing]);
  if (isStopping(signal)) throw signal.reason;
  if (observed.status === 'rejected') throw observed.reason;
  if (applied.status === 'rejected') throw applied.reason;
  const { failure, retry, bound } = applied.value;
  await recordApplyFailure(store, id, 'kubernetes', failure, bound);
  const { activated, report } = observed.value;
  const message = [report.failure, failure].filter((text) => text !== null).join(' ') || null;
  return {
    generation: 0,
    applied: false,
    activated,
    inForce: failure === null,
    failure: message,
    wakeAt,
    retry,
  };
}

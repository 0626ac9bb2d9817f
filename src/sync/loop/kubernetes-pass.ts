/** A pass over the Kubernetes side of a cluster: applies people's permissions and observes the cluster, in parallel. */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import { type Cluster, sentencesOf } from '../../domain/clusters/cluster.ts';
import { messageOf } from '../../lib/error-message.ts';
import { findKubernetesAccess, findNextExpiry } from '../../store/access/kubernetes-access.ts';
import { recordApplyFailure } from '../../store/clusters/cluster-sides.ts';
import { recordKubernetesReport } from '../../store/clusters/observations.ts';
import type { KubernetesDriver, KubernetesOutcome } from '../driver.ts';
import { aborted, atMost, isStopping, observeSide, type Pass, type PassDeps } from './pass.ts';

/** A thousand permissions take a few seconds; the next pass does what is left after this time. */
const applyLimitMs = 300_000;

/** Creates the passes of one side. A slow observation goes on across passes, and no change waits for it. */
export function kubernetesPasses(): Pass<KubernetesDriver> {
  let observing: Promise<{ failure: string | null; isReached: boolean }> | undefined;
  // Kept for the next pass that is not overtaken, as activation is itself a change that overtakes this one.
  let isActivated = false;
  return async (deps, cluster, openDriver, signal, superseded) => {
    const { store, admission } = deps;
    const { id, desiredGeneration } = cluster;
    const [wakeAt, access] = await admission(() => findWanted(deps, cluster));
    const driver = await openDriver(cluster);
    const record = (report: KubernetesSideReport) =>
      recordKubernetesReport(store, id, { ...report, desiredGeneration });
    observing ??= observeSide(deps, cluster, { side: 'kubernetes', driver, record }, signal)
      .then(
        ({ activated, report: { failure } }) => {
          isActivated ||= activated;
          return { failure, isReached: true };
        },
        (error) => ({ failure: messageOf(error), isReached: false }),
      )
      .finally(() => {
        observing = undefined;
      });
    const applied = await driver
      .apply(access, atMost(signal, applyLimitMs), superseded)
      .catch((error): KubernetesOutcome => ({ failure: messageOf(error), retry: true, bound: undefined }));
    if (isStopping(signal)) throw signal.reason;
    if (!applied) return 'overtaken';
    const { failure, retry, bound } = applied;
    await recordApplyFailure(store, id, 'kubernetes', failure, bound);
    const observed = await Promise.race([observing, aborted(superseded)]);
    if (isStopping(signal)) throw signal.reason;
    if (!observed) return 'overtaken';
    const { isReached } = observed;
    const message = sentencesOf([observed.failure, failure]).join(' ') || null;
    if (!isReached && bound === undefined) throw new Error(message ?? 'It cannot be reached.');
    const activated = isActivated;
    isActivated = false;
    return {
      generation: 0,
      applied: false,
      activated,
      inForce: failure === null,
      failure: message,
      wakeAt,
      retry: retry || !isReached,
    };
  };
}

function findWanted({ store, subjectIssuer, now }: PassDeps, cluster: Cluster) {
  // Both queries use the same time: a grant that ends between them would be missed by this pass and by `wakeAt`.
  const moment = now();
  return Promise.all([
    findNextExpiry(store.read, cluster.id, moment),
    findKubernetesAccess(store, cluster, subjectIssuer, moment),
  ]);
}

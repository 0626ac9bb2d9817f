/** A pass over the Slurm side of a cluster: list → manifest → observe → plan → apply → record. */

import type { Cluster } from '../domain/cluster.ts';
import type { Manifest, SlurmReport } from '../domain/manifest.ts';
import { messageOf } from '../lib/error-message.ts';
import { inSpan } from '../lib/trace.ts';
import {
  acceptAccessLists,
  createAccessList,
  findAccessList,
  updateDesiredGeneration,
} from '../store/access-lists.ts';
import { recordApplyFailure } from '../store/cluster-sides.ts';
import { findManifest } from '../store/manifests.ts';
import { recordSlurmReport } from '../store/observations.ts';
import type { SlurmDriver } from './driver.ts';
import { atMost, isStopping, observeSide, type PassDeps, type PassResult } from './pass.ts';

/** Compute nodes restart one at a time, which is slow; an `apply` that takes longer than this hangs. */
const applyLimitMs = 3_600_000;

export async function passSlurm(
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<SlurmDriver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, admission } = deps;
  const manifest = await inSpan('plan', {}, () => admission(() => nextManifest(deps, cluster)));
  // Opened only now, as people's access is computed and shown also for a cluster that cannot be reached.
  const driver = await openDriver(cluster);
  let activated = false;
  const observe = async (): Promise<SlurmReport> => {
    const record = (report: SlurmReport) => recordSlurmReport(store, cluster.id, report);
    const observed = await observeSide(deps, cluster, { side: 'slurm', driver, record }, signal);
    activated ||= observed.activated;
    return observed.report;
  };
  let report = await observe();
  const needed = manifest !== undefined && (isApplyNeeded(manifest, report) || report.drifted === true);
  if (needed) {
    await deps.recheckSessions?.(cluster.id);
    const generation = { 'andromeda.generation': manifest.generation };
    const work = inSpan('apply', generation, () => driver.apply(manifest, atMost(signal, applyLimitMs)));
    const failed = await observeDuring(work, observe, deps.intervalMs).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (isStopping(signal)) throw signal.reason;
    await recordApplyFailure(store, cluster.id, 'slurm', failed ? messageOf(failed.error) : null);
    if (failed) throw failed.error;
    report = await observe();
  }
  const { manifestGeneration: generation, failure } = report;
  const inForce = manifest !== undefined && !isApplyNeeded(manifest, report);
  return { generation, applied: needed && inForce, activated, inForce, failure };
}

/** Waits for work that may take long, observing at every interval: who may log in meanwhile depends on recent reports. */
async function observeDuring(
  work: Promise<void>,
  observe: () => Promise<unknown>,
  intervalMs: number,
): Promise<void> {
  const over = work.then(
    () => true,
    () => true,
  );
  const interval = () => new Promise<void>((resolve) => void setTimeout(resolve, intervalMs).unref());
  while (!(await Promise.race([over, interval()]))) {
    // A cluster that cannot be reached at the moment does not mean that the work failed.
    await observe().catch(() => {});
  }
  return work;
}

/** The accepted list; undefined when it changed again just now, which brings the next pass. */
async function nextManifest({ store, lists }: PassDeps, cluster: Cluster): Promise<Manifest | undefined> {
  const list = await findAccessList(store.read, cluster.id);
  if (!list) {
    await lists.joinOrganization(cluster.organizationId);
    await createAccessList(store, cluster);
  } else if (list.desiredGeneration !== cluster.desiredGeneration) {
    await updateDesiredGeneration(store, cluster);
  }
  if (!list || list.acceptedGeneration !== list.generation) {
    await acceptAccessLists(store, cluster.organizationId);
  }
  return findManifest(store, cluster.id);
}

/** Whether a cluster has anything other than the manifest in force. */
export function isApplyNeeded(manifest: Manifest, report: SlurmReport): boolean {
  return (
    report.manifestGeneration !== manifest.generation ||
    report.desiredGeneration !== manifest.desiredGeneration
  );
}

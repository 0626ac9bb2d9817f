/** A pass over the Slurm side of a cluster: list → manifest → observe → plan → apply → record. */

import type { Cluster } from '../domain/cluster.ts';
import type { Manifest, SlurmReport } from '../domain/manifest.ts';
import {
  acceptAccessLists,
  createAccessList,
  findAccessList,
  updateDesiredGeneration,
} from '../store/access-lists.ts';
import { recordApplyFailure, recordLookFailure } from '../store/cluster-sides.ts';
import { activateCluster } from '../store/clusters.ts';
import { findManifest } from '../store/manifests.ts';
import { recordSlurmReport } from '../store/observations.ts';
import type { SlurmDriver } from './driver.ts';
import { atMost, isStopping, messageOf, observeLimitMs, type PassDeps, type PassResult } from './pass.ts';

/** Compute nodes restart one at a time, which takes its time; longer than this it hangs. */
const applyLimitMs = 3_600_000;

export async function passSlurm(
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<SlurmDriver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, admission } = deps;
  const manifest = await admission(() => nextManifest(deps, cluster));
  // Only now: people's access is computed and shown whether or not the cluster can be reached.
  const driver = await openDriver(cluster);
  let activated = false;
  const observe = async (): Promise<SlurmReport> => {
    const report = await driver.observe(atMost(signal, observeLimitMs)).catch(async (error) => {
      if (!isStopping(signal))
        await recordLookFailure(store, cluster.id, 'slurm', messageOf(error), deps.now());
      throw error;
    });
    if (await admission(() => record(deps, cluster, report))) activated = true;
    return report;
  };
  let report = await observe();
  const needed = manifest !== undefined && (isApplyNeeded(manifest, report) || report.drifted === true);
  if (needed) {
    const work = driver.apply(manifest, atMost(signal, applyLimitMs));
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
  return { generation, applied: needed && !isApplyNeeded(manifest, report), activated, failure };
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
async function nextManifest(
  { store, lists, now }: PassDeps,
  cluster: Cluster,
): Promise<Manifest | undefined> {
  const list = await findAccessList(store.read, cluster.id);
  if (!list) {
    await lists.joinOrganization(cluster.organizationId);
    await createAccessList(store, cluster, now());
  } else if (list.desired_generation !== cluster.desiredGeneration) {
    await updateDesiredGeneration(store, cluster);
  }
  if (!list || list.accepted_generation !== list.generation) {
    await acceptAccessLists(store, cluster.organizationId, now());
  }
  return findManifest(store, cluster.id);
}

/** Records what the cluster reported; returns whether that made it active. */
async function record({ store, now }: PassDeps, cluster: Cluster, report: SlurmReport): Promise<boolean> {
  await recordSlurmReport(store, cluster.id, report, now());
  if (cluster.state !== 'provisioning' || !report.controlPlaneReady) return false;
  return store.write((tx) => activateCluster(tx, cluster.id, now()));
}

/** Whether a cluster has anything other than the manifest in force. */
export function isApplyNeeded(manifest: Manifest, report: SlurmReport): boolean {
  return (
    report.manifestGeneration !== manifest.generation ||
    report.desiredGeneration !== manifest.desiredGeneration
  );
}

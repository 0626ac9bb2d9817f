/** One pass over one cluster: list → manifest → observe → plan → apply → record. */
import type { Manifest, Report } from '../domain/manifest.ts';
import { acceptAccessList, findManifest, updateAccessList } from '../store/access-lists.ts';
import { activateCluster, findCluster } from '../store/clusters.ts';
import type { Store } from '../store/index.ts';
import { recordObservation } from '../store/observations.ts';
import type { Driver } from './driver.ts';

export interface PassResult {
  /** The manifest in force at the end, 0 where there is none. */
  generation: number;
  applied: boolean;
  activated: boolean;
}

/** Brings a cluster to the present truth. Throws when the cluster cannot be reached or changed. */
export async function reconcile(
  deps: { store: Store; now(): number },
  clusterId: string,
  openDriver: () => Promise<Driver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, now } = deps;
  const cluster = await findCluster(store.read, clusterId);
  if (!cluster) throw new Error(`cluster ${clusterId} is gone from the database`);
  let manifest: Manifest | undefined;
  if (cluster.scheduler === 'sunk') {
    const organizationId = cluster.organization_id;
    const desiredGeneration = cluster.desired_generation;
    await updateAccessList(store, { id: clusterId, organizationId, desiredGeneration }, now());
    await acceptAccessList(store, clusterId, now());
    manifest = await findManifest(store.read, clusterId);
  }

  // Only now: people's access is computed and shown whether or not the cluster can be reached.
  const driver = await openDriver();
  let report = await driver.observe(signal);
  const needed = manifest !== undefined && isApplyNeeded(manifest, report);
  if (manifest && needed) {
    await driver.apply(manifest, signal);
    report = await driver.observe(signal);
  }
  await recordObservation(store, clusterId, report, now());
  const activated =
    cluster.state === 'provisioning' &&
    report.controlPlaneReady &&
    (await store.write((tx) => activateCluster(tx, clusterId, report.computeNodes, now())));
  return { generation: report.manifestGeneration, applied: needed, activated };
}

/** Whether a cluster has anything other than the manifest in force. */
export function isApplyNeeded(manifest: Manifest, report: Report): boolean {
  return (
    report.manifestGeneration !== manifest.generation ||
    report.desiredGeneration !== manifest.desiredGeneration
  );
}

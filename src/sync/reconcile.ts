/** One pass over one cluster: list → manifest → observe → plan → apply → record; or its release. */
import { failureOf, type Manifest, type Report } from '../domain/manifest.ts';
import {
  acceptAccessLists,
  createAccessList,
  findAccessList,
  updateDesiredGeneration,
} from '../store/access-lists.ts';
import {
  activateCluster,
  type Cluster,
  completeRelease,
  findCluster,
  recordCleanupFailure,
} from '../store/clusters.ts';
import type { Store } from '../store/index.ts';
import { findNextExpiry } from '../store/kubernetes-access.ts';
import { findManifest, findManifestWithoutList } from '../store/manifests.ts';
import { deleteObservedAccounts, recordObservation } from '../store/observations.ts';
import type { Driver } from './driver.ts';
import type { ListKeeper } from './lists.ts';
import type { Queue } from './queue.ts';

export interface ReconcileDeps {
  store: Store;
  lists: ListKeeper;
  inTurn: Queue;
  /** Until a cluster is to be looked at again while something is applied there: an interval, or sooner. */
  untilNextLook(wakeAt: number | undefined): Promise<void>;
  now(): number;
}

/** A cluster that does not say how it is within this time is not there. */
const observeLimitMs = 60_000;
/** A thousand permissions are a few seconds' work; what is left then is the next pass's. */
const permitLimitMs = 300_000;
/** Compute nodes restart one at a time, which takes its time; longer than this it hangs. */
const applyLimitMs = 3_600_000;

export interface PassResult {
  /** The manifest in force at the end, 0 where there is none. */
  generation: number;
  applied: boolean;
  activated: boolean;
  /** There is nothing more to be done for this cluster, ever. */
  released: boolean;
  /** In words, what a person must mend there. */
  failure: string | null;
  /** When a grant there ends by itself, in ms since 1970. */
  wakeAt?: number | undefined;
}

/** Brings a cluster to the present truth. Throws when the cluster cannot be reached or changed. */
export async function reconcile(
  deps: ReconcileDeps,
  clusterId: string,
  openDriver: (cluster: Cluster) => Promise<Driver>,
  signal: AbortSignal,
): Promise<PassResult> {
  const { store, inTurn } = deps;
  const cluster = await findCluster(store.read, clusterId);
  if (!cluster) throw new Error(`cluster ${clusterId} is gone from the database`);
  if (cluster.state === 'releasing' || cluster.state === 'released') {
    if (cluster.state === 'releasing') await release(deps, cluster, openDriver, signal);
    return { generation: 0, applied: false, activated: false, released: true, failure: null };
  }
  const manifest = await inTurn(() =>
    cluster.scheduler === 'sunk' ? nextManifest(deps, cluster) : findManifestWithoutList(store.read, cluster),
  );

  // Only now: people's access is computed and shown whether or not the cluster can be reached.
  const driver = await openDriver(cluster);
  let activated = false;
  let wakeAt: number | undefined;
  const look = async (): Promise<Report> => {
    if (driver.permit) {
      // Before it is looked at: what ends meanwhile is looked at again.
      wakeAt = await inTurn(() => findNextExpiry(store.read, clusterId, deps.now()));
      await driver.permit(atMost(signal, permitLimitMs));
    }
    const report = await driver.observe(atMost(signal, observeLimitMs));
    if (await inTurn(() => record(deps, cluster, report))) activated = true;
    return report;
  };
  let report = await look();
  const needed = manifest !== undefined && (isApplyNeeded(manifest, report) || report.drifted === true);
  if (needed) {
    const work = driver.apply(manifest, atMost(signal, applyLimitMs));
    await lookingOn(work, look, () => deps.untilNextLook(wakeAt));
    report = await look();
  }
  const { manifestGeneration: generation } = report;
  const applied = needed && !isApplyNeeded(manifest, report);
  const failure = failureOf(report);
  return { generation, applied, activated, released: false, failure, wakeAt };
}

/** Waits for work that may take long, looking every so often: who may log in meanwhile depends on recent reports. */
async function lookingOn(
  work: Promise<void>,
  look: () => Promise<unknown>,
  untilNextLook: () => Promise<void>,
): Promise<void> {
  const over = work.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([over, untilNextLook()]))) {
    // One that cannot be reached at the moment says nothing of the work.
    await look().catch(() => {});
  }
  return work;
}

function atMost(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

/** The accepted list; undefined when it changed again just now, which brings the next pass. */
async function nextManifest(
  { store, lists, now }: ReconcileDeps,
  cluster: Cluster,
): Promise<Manifest | undefined> {
  const list = await findAccessList(store.read, cluster.id);
  if (!list) {
    await lists.joinOrganization(cluster.organization_id);
    await createAccessList(store, cluster, now());
  } else if (list.desired_generation !== cluster.desired_generation) {
    await updateDesiredGeneration(store, cluster);
  }
  if (!list || list.accepted_generation !== list.generation) {
    await acceptAccessLists(store, cluster.organization_id, now());
  }
  return findManifest(store, cluster.id);
}

/** Keeps what the cluster said; returns whether that made it active. */
async function record({ store, now }: ReconcileDeps, cluster: Cluster, report: Report): Promise<boolean> {
  await recordObservation(store, cluster.id, report, now());
  if (cluster.state !== 'provisioning' || !report.controlPlaneReady) return false;
  return store.write((tx) => activateCluster(tx, cluster.id, now()));
}

async function release(
  { store, now }: ReconcileDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<Driver>,
  signal: AbortSignal,
): Promise<void> {
  try {
    const driver = await openDriver(cluster);
    await driver.release(atMost(signal, applyLimitMs));
  } catch (error) {
    const isStopping = signal.aborted && (signal.reason as Error).name === 'AbortError';
    if (!isStopping) {
      const failure = error instanceof Error ? error.message : String(error);
      await store.write((tx) => recordCleanupFailure(tx, cluster.id, failure, now()));
    }
    throw error;
  }
  await deleteObservedAccounts(store, cluster.id);
  await store.write((tx) => completeRelease(tx, cluster.id, now()));
}

/** Whether a cluster has anything other than the manifest in force. */
export function isApplyNeeded(manifest: Manifest, report: Report): boolean {
  return (
    report.manifestGeneration !== manifest.generation ||
    report.desiredGeneration !== manifest.desiredGeneration
  );
}

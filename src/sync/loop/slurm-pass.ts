/** A pass over the Slurm side of a cluster: list → observe → manifest → plan → apply → record. */
import type { AccessList, SlurmReport } from '../../domain/access/manifest.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { messageOf } from '../../lib/error-message.ts';
import {
  createAccessList,
  findAccessList,
  findManifest,
  keepNumbers,
  updateDesiredGeneration,
} from '../../store/access/access-lists.ts';
import { recordAdopted } from '../../store/access/adopted-accounts.ts';
import { recordApplyFailure } from '../../store/clusters/cluster-sides.ts';
import { findObservation, recordSlurmReport } from '../../store/clusters/observations.ts';
import type { SlurmDriver } from '../driver.ts';
import { atMost, isStopping, observeSide, type PassDeps, type PassResult } from './pass.ts';

/** Delay until a login node is observed again after one failed connection, so that two in a row are known within two intervals. */
const askAgainMs = 2_000;

/** Compute nodes restart one at a time, which is slow; an `apply` that takes longer than this hangs. */
const applyLimitMs = 3_600_000;

export async function passSlurm(
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<SlurmDriver>,
  signal: AbortSignal,
  superseded: AbortSignal,
): Promise<PassResult> {
  const { store, admission } = deps;
  const list = await admission(() => currentList(deps, cluster));
  // Opened after the list, because people's access is computed and shown also for a cluster that cannot be reached.
  const driver = await openDriver(cluster);
  let activated = false;
  const observe = async (): Promise<SlurmReport> => {
    const record = async (report: SlurmReport) => {
      await recordSlurmReport(store, cluster.id, report);
      if (report.numbers?.length) await keepNumbers(store, cluster.id, report.numbers);
    };
    const observed = await observeSide(deps, cluster, { side: 'slurm', driver, record }, signal, superseded);
    activated ||= observed.activated;
    const down = observed.report.loginNodes.filter(({ up }) => !up).length;
    deps.log.debug('sync.login_nodes', { cluster: cluster.name, down });
    return observed.report;
  };
  // A known change goes to the hosts at once, and they are observed afterwards.
  const last = list && (await findObservation(store.read, cluster.id, 'slurm'));
  const isDue = list && last && last.manifestGeneration > 0 && isApplyNeeded(list, last);
  let report = isDue ? undefined : await observe();
  const isNeeded =
    list !== undefined && (report === undefined || isApplyNeeded(list, report) || report.drifted === true);
  const manifest = isNeeded ? await admission(() => findManifest(store, cluster.id)) : undefined;
  if (manifest) {
    await deps.recheckSessions?.(cluster.id);
    const former = await recordAdopted(store, manifest, cluster.driver.slurm?.adoptPrivileged);
    const work = driver.apply({ ...manifest, former }, atMost(signal, applyLimitMs), superseded);
    const failed = await observeDuring(work, observe, deps.intervalMs).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (isStopping(signal)) throw signal.reason;
    await recordApplyFailure(store, cluster.id, 'slurm', failed ? messageOf(failed.error) : null);
    if (failed) throw failed.error;
    report = undefined;
  }
  report ??= await observe();
  const { manifestGeneration: generation, failure } = report;
  const wanted = manifest ?? list;
  const inForce = wanted !== undefined && !isApplyNeeded(wanted, report);
  const wakeAt = report.loginNodes.some(({ missed }) => missed) ? deps.now() + askAgainMs : undefined;
  return { generation, applied: manifest !== undefined && inForce, activated, inForce, failure, wakeAt };
}

/** Waits for slow work and observes at every interval, because logins meanwhile are decided by recent reports. */
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
    // A failed observation does not mean that the work failed.
    await observe().catch(() => {});
  }
  return work;
}

/** The cluster's access list, updated to its configuration; undefined when the list is withdrawn. */
async function currentList({ store, lists }: PassDeps, cluster: Cluster): Promise<AccessList | undefined> {
  let list = await findAccessList(store.read, cluster.id);
  if (!list) {
    await lists.joinOrganization(cluster.organizationId);
    list = await createAccessList(store, cluster);
  }
  const { id, desiredGeneration } = cluster;
  if (!list || list.isWithdrawn) return undefined;
  if (list.desiredGeneration === desiredGeneration) return list;
  await updateDesiredGeneration(store, { id, desiredGeneration });
  return { ...list, desiredGeneration };
}

function isApplyNeeded(
  wanted: Pick<AccessList, 'generation' | 'desiredGeneration'>,
  report: Pick<SlurmReport, 'manifestGeneration' | 'desiredGeneration'>,
): boolean {
  return (
    report.manifestGeneration !== wanted.generation || report.desiredGeneration !== wanted.desiredGeneration
  );
}

/**
 * The latest report of each side of a cluster. A person's confirmed state follows from the list version that the
 * cluster has, so that a report costs one row, not one per person; only accounts that it reports by name have rows.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Selectable } from 'kysely';
import {
  isRecent,
  type KubernetesReport,
  type LoginNodeReport,
  type MachineReport,
  type SideReport,
  type SlurmReport,
  type StorageReport,
} from '../../domain/access/manifest.ts';
import {
  allSides,
  type Cluster,
  type ClusterReport,
  type KeptSlurmReport,
  mergeMachines,
  mergeSides,
  type Observation,
  type Side,
  type SideState,
  type Silence,
  sidesOf,
  withSilence,
  withTransitionTimes,
} from '../../domain/clusters/cluster.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, findRow, listRows, saveRow, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { noteAllDropped, noteDrops } from '../people/ssh-keys.ts';
import { updateCluster } from './cluster-row.ts';
import { clearObserveFailure, listSideRows } from './cluster-sides.ts';
import { findCluster } from './clusters.ts';
import { addObservedGpuTime, saveGpuDays } from './gpu-days.ts';
import { recordMachines } from './machines.ts';

/** Stores the Kubernetes versions that a cluster reports, where they are new. One that it does not report stays. */
async function updateKubernetesVersions(
  tx: Tx,
  clusterId: string,
  reported: Pick<KubernetesReport, 'version' | 'kubeletVersion'>,
): Promise<void> {
  const cluster = await findRow(tx.db, 'clusters', { id: clusterId });
  if (!cluster) return;
  const { version = cluster.kubernetes_version, kubeletVersion = cluster.kubelet_version } = reported;
  const isNewTarget = version !== cluster.kubernetes_version;
  if (!isNewTarget && kubeletVersion === cluster.kubelet_version) return;
  const change = { kubernetes_version: version, kubelet_version: kubeletVersion };
  await updateCluster(tx, clusterId, change, { raised: isNewTarget ? ['version_generation'] : [] });
}

type ObservationRow = Selectable<Schema['observations']>;

export async function findObservation<S extends Side>(
  db: Reader,
  clusterId: string,
  side: S,
): Promise<Observation<S> | undefined> {
  const row = await findRow(db, 'observations', { cluster_id: clusterId, side });
  if (!row) return undefined;
  const report = parseReport<Observation<S>['report'] & Silence>(row.report);
  return {
    observedAt: fromTime(report.controllerHeardAt ?? row.observed_at),
    manifestGeneration: row.manifest_generation,
    desiredGeneration: row.desired_generation,
    listVersion: row.list_version,
    failure: row.failure,
    waiting: report.waiting ?? [],
    report,
  };
}

export function parseReport<R extends SideReport>(text: string): R {
  return JSON.parse(text) as R;
}

/** Merges the latest reports of a cluster's sides into one. */
export async function findClusterReport(
  db: Reader,
  cluster: Pick<Cluster, 'id' | 'scheduler' | 'driver'>,
  now: number,
): Promise<ClusterReport> {
  return mergeSides(await listSideStates(db, cluster), now);
}

export async function listSideStates(
  db: Reader,
  cluster: Pick<Cluster, 'id' | 'scheduler' | 'driver'>,
): Promise<SideState[]> {
  const rows = new Map((await listSideRows(db, cluster.id)).map((row) => [row.side, row]));
  const states: SideState[] = [];
  for (const side of sidesOf(cluster)) {
    const row = rows.get(side);
    states.push({
      side,
      observation: await findObservation(db, cluster.id, side),
      observeFailure:
        row?.look_failure == null
          ? undefined
          : { since: fromTime(row.look_failed_since ?? ''), message: row.look_failure },
      applyFailure: row?.apply_failure ?? undefined,
    });
  }
  return states;
}

/** The storage that the sides of a cluster last reported, however long ago. */
export async function listReportedStorage(db: Reader, clusterId: string): Promise<StorageReport[]> {
  const found = await Promise.all(allSides.map((side) => findObservation(db, clusterId, side)));
  return found.flatMap((observation) => observation?.report.storage ?? []);
}

/** Reports are repeated at every interval, so that none is worth holding up other writes for the disk. */
const unflushed = { flush: false };

/** Stores a report of the Slurm side, and announces it when it says something new. */
export async function recordSlurmReport(store: Store, clusterId: string, report: SlurmReport): Promise<void> {
  const { accounts, gpuDays, numbers: _, ...rest } = report;
  await store.write(async (tx) => {
    if (gpuDays) await saveGpuDays(tx, clusterId, gpuDays);
    else if (!report.silent) await addObserved(tx, clusterId, report);
    const columns = {
      manifest_generation: report.manifestGeneration,
      list_version: await knownVersion(tx, clusterId, report.listVersion ?? 0),
    };
    const isOther = await saveReport(tx, { clusterId, side: 'slurm', columns }, rest);
    const isNews = await saveAccounts(tx, clusterId, accounts);
    const hasDropped = await noteDrops(tx, clusterId);
    if (isNews || isOther || hasDropped) tx.changed({ kind: 'report', clusterId });
  }, unflushed);
}

async function addObserved(tx: Tx, clusterId: string, { runningJobs }: SlurmReport): Promise<void> {
  const before = await findRow(tx.db, 'observations', { cluster_id: clusterId, side: 'slurm' });
  const since = before && fromTime(before.observed_at);
  if (since && runningJobs) await addObservedGpuTime(tx, clusterId, { jobs: runningJobs, since });
}

/** Stores a report of the Kubernetes side, and announces it when it says something new. */
export async function recordKubernetesReport(
  store: Store,
  clusterId: string,
  report: SideReport,
): Promise<void> {
  await store.write(async (tx) => {
    const columns = { manifest_generation: 0, list_version: 0 };
    if (await saveReport(tx, { clusterId, side: 'kubernetes', columns }, report)) {
      tx.changed({ kind: 'report', clusterId });
    }
  }, unflushed);
}

/** Returns whether the report says something else than the one before. */
async function saveReport(
  tx: Tx,
  about: {
    clusterId: string;
    side: Side;
    columns: Pick<ObservationRow, 'manifest_generation' | 'list_version'>;
  },
  report: SideReport & Silence,
): Promise<boolean> {
  const { clusterId, side, columns } = about;
  const before = await findRow(tx.db, 'observations', { cluster_id: clusterId, side });
  const now = toTime(tx.now);
  const earlier = before && parseReport<SideReport & Silence>(before.report);
  const dated = withTransitionTimes(report, earlier, now);
  const text = JSON.stringify(
    withSilence(dated, earlier && { report: earlier, at: before.observed_at }, now),
  );
  const isSilent = before !== undefined && report.silent === 'all';
  const at = isSilent ? before.observed_at : now;
  if (!isSilent) tx.observationAges.recorded(clusterId, side, at);
  await saveRow(tx.db, 'observations', ['cluster_id', 'side'], {
    cluster_id: clusterId,
    side,
    observed_at: at,
    ...columns,
    desired_generation: report.desiredGeneration,
    failure: report.failure,
    report: text,
  });
  await clearObserveFailure(tx, clusterId, side);
  // A control plane that does not answer reports no machines, which must not retire them.
  const { machines } = report;
  if (machines && (report.controlPlaneReady || machines.length > 0)) {
    await recordSideMachines(tx, { clusterId, side }, machines);
  }
  if (report.kubernetes) await updateKubernetesVersions(tx, clusterId, report.kubernetes);
  return before?.report !== text;
}

/** Merges the recent report of a cluster's other side; until that side has reported, no machine is retired. */
async function recordSideMachines(
  tx: Tx,
  { clusterId, side }: { clusterId: string; side: Side },
  machines: readonly MachineReport[],
): Promise<void> {
  const cluster = await findCluster(tx.db, clusterId);
  const otherSide = cluster && sidesOf(cluster).find((one) => one !== side);
  if (otherSide === undefined) return recordMachines(tx, clusterId, machines);
  const other = await findObservation(tx.db, clusterId, otherSide);
  const isKnown = other !== undefined && isRecent(other.observedAt, tx.now);
  const others = isKnown ? other.report.machines : undefined;
  const own = new Set(machines.map(({ name }) => name));
  const merged =
    side === 'slurm' ? mergeMachines(machines, others ?? []) : mergeMachines(others ?? [], machines);
  await recordMachines(
    tx,
    clusterId,
    merged.filter(({ name }) => own.has(name)),
    others ? merged.filter(({ name }) => !own.has(name)).map(({ name }) => name) : 'unknown',
  );
}

export async function deleteObservedAccounts(store: Store, clusterId: string): Promise<void> {
  await store.write(async (tx) => {
    await noteAllDropped(tx, clusterId);
    await updateRows(tx.db, 'observations', { cluster_id: clusterId }, { list_version: 0 });
    await deleteRows(tx.db, 'observed_accounts', { cluster_id: clusterId });
  });
}

/** The list version that a cluster reports; 0 when there never was such a one, as after a backup was restored. */
async function knownVersion(tx: Tx, clusterId: string, version: number): Promise<number> {
  if (version === 0) return 0;
  const [list] = await listVersionOf(tx.db, clusterId);
  return version <= (list?.version ?? 0) ? version : 0;
}

const listVersionOf = prepared((db, clusterId: string) =>
  db
    .selectFrom('organization_access_lists as o')
    .innerJoin('clusters as c', 'c.organization_id', 'o.org_id')
    .select('o.version')
    .where('c.id', '=', clusterId),
);

/** Replaces the accounts that a cluster reports by name; returns whether that changed anything. */
async function saveAccounts(tx: Tx, clusterId: string, accounts: SlurmReport['accounts']): Promise<boolean> {
  const unnamed = new Map(
    (await listRows(tx.db, 'observed_accounts', { cluster_id: clusterId })).map((row) => [row.user_id, row]),
  );
  let isNews = false;
  for (const account of accounts) {
    const row = {
      cluster_id: clusterId,
      user_id: account.userId,
      ssh_key_set_generation: account.keySetGeneration,
      key_fingerprints: JSON.stringify(account.keyFingerprints),
      shell: account.shell,
      login_state: account.loginState,
    };
    const before = unnamed.get(account.userId);
    unnamed.delete(account.userId);
    if (isDeepStrictEqual(before, row)) continue;
    isNews = true;
    await saveRow(tx.db, 'observed_accounts', ['cluster_id', 'user_id'], row);
  }
  for (const userId of unnamed.keys())
    await deleteRows(tx.db, 'observed_accounts', { cluster_id: clusterId, user_id: userId });
  return isNews || unnamed.size > 0;
}

interface ReportedLoginNode {
  cluster: string;
  node: LoginNodeReport;
  /** The name of an account on the node; undefined where there is none. */
  username: string | undefined;
}

/** The login nodes that Slurm clusters reported last, by the name of the cluster. */
export async function listLoginNodes(db: Reader): Promise<ReportedLoginNode[]> {
  const rows = await db
    .selectFrom('clusters as c')
    .innerJoin('observations as o', (join) =>
      join.onRef('o.cluster_id', '=', 'c.id').on('o.side', '=', 'slurm'),
    )
    .select(['c.id', 'c.name', 'c.organization_id', 'o.report', 'o.list_version'])
    .where('c.scheduler', '=', 'sunk')
    .orderBy('c.name')
    .execute();
  const all = rows.map(async ({ name, organization_id, report, list_version }) => {
    const { loginNodes } = parseReport<KeptSlurmReport>(report);
    const listed = await findListedUsername(db, organization_id, list_version);
    return loginNodes.map((node) => ({ cluster: name, node, username: node.username ?? listed }));
  });
  return (await Promise.all(all)).flat();
}

/** A username from a version of the organization's list, of a person with keys if there is one: others may be locked. */
async function findListedUsername(
  db: Reader,
  organizationId: string,
  version: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('access_list_users as l')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'l.org_id').onRef('n.user_id', '=', 'l.user_id'),
    )
    .select('n.username')
    .where('l.org_id', '=', organizationId)
    .where('l.since_version', '<=', version)
    .where((eb) => eb.or([eb('l.until_version', 'is', null), eb('l.until_version', '>', version)]))
    .orderBy('l.desired_login_state')
    .limit(1)
    .executeTakeFirst();
  return row?.username;
}

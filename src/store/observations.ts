/**
 * What the sides of clusters report; the latest report of each is kept. What a cluster confirmed of a person follows from
 * the list version that it has, so that a report costs a row and not one a person; only what it says of people by name is
 * kept by name.
 */
import type { Selectable } from 'kysely';
import { isRecent } from '../domain/access-list.ts';
import type { Cluster } from '../domain/cluster.ts';
import { withTransitionTimes } from '../domain/condition.ts';
import type { MachineReport, SideReport, SlurmReport, StorageReport } from '../domain/manifest.ts';
import { type ClusterReport, mergeMachines, mergeSides, type SideState } from '../domain/merged-report.ts';
import type { Observation } from '../domain/observation.ts';
import { allSides, type Side, sidesOf } from '../domain/side.ts';
import { clearObserveFailure, listSideRows } from './cluster-sides.ts';
import { findCluster } from './clusters.ts';
import type { Reader, Store, Tx } from './index.ts';
import { noteAllDropped, noteDrops } from './key-drops.ts';
import { updateKubernetesVersions } from './kubernetes-versions.ts';
import { recordMachines } from './machines.ts';
import { prepared } from './prepared.ts';
import type { ObservationTable, ObservedAccountTable } from './schema.ts';
import { fromTime, toTime } from './time.ts';

type ObservationRow = Selectable<ObservationTable>;

/** The latest report of a side; undefined before the first. */
export async function findObservation<S extends Side>(
  db: Reader,
  clusterId: string,
  side: S,
): Promise<Observation<S> | undefined> {
  const [row] = await rowOf(db, clusterId, side);
  if (!row) return undefined;
  return {
    observedAt: fromTime(row.observed_at),
    manifestGeneration: row.manifest_generation,
    desiredGeneration: row.desired_generation,
    listVersion: row.list_version,
    failure: row.failure,
    report: parseReport(row.report),
  };
}

const rowOf = prepared((db, clusterId: string, side: string) =>
  db
    .selectFrom('observations')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('side', '=', side as Side),
);

/** A report as it was kept, of the side that the column is of. */
export function parseReport<R extends SideReport>(text: string): R {
  return JSON.parse(text) as R;
}

/** What is known of a cluster as a whole, from the latest reports of its sides. */
export async function findClusterReport(
  db: Reader,
  cluster: Pick<Cluster, 'id' | 'scheduler' | 'driver'>,
  now: number,
): Promise<ClusterReport> {
  return mergeSides(await listSideStates(db, cluster), now);
}

/** The sides of a cluster as they are on record. */
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

/** Accounts written in one go: few enough to take a few milliseconds. */
const pageSize = 200;
/** A report comes again soon, and every cluster's at every interval: none is worth stopping everyone for the disk. */
const unflushed = { flush: false };

/**
 * Keeps a report of the Slurm side, and announces it when it says something new. Accounts that it names come first and
 * those that it names no more go last, so that nobody is unconfirmed in between.
 */
export async function recordSlurmReport(store: Store, clusterId: string, report: SlurmReport): Promise<void> {
  const { accounts, ...rest } = report;
  const { named, unnamed } = await compareAccounts(store.read, clusterId, accounts);
  const isNews = named.length + unnamed.length > 0;
  while (named.length > pageSize) {
    const page = named.splice(0, pageSize);
    await store.write((tx) => nameAccounts(tx, page), unflushed);
  }
  await store.write(async (tx) => {
    await nameAccounts(tx, named);
    const columns = {
      manifest_generation: report.manifestGeneration,
      list_version: await knownVersion(tx, clusterId, report.listVersion ?? 0),
    };
    const isOther = await saveReport(tx, { clusterId, side: 'slurm', columns }, rest);
    await forgetAccounts(tx, clusterId, unnamed.splice(0, pageSize));
    const hasDropped = await noteDrops(tx, clusterId);
    if (isNews || isOther || hasDropped) tx.changed({ observedClusterId: clusterId });
  }, unflushed);
  while (unnamed.length > 0) {
    const page = unnamed.splice(0, pageSize);
    await store.write((tx) => forgetAccounts(tx, clusterId, page), unflushed);
  }
}

/** Keeps a report of the Kubernetes side, and announces it when it says something new. */
export async function recordKubernetesReport(
  store: Store,
  clusterId: string,
  report: SideReport,
): Promise<void> {
  await store.write(async (tx) => {
    const columns = { manifest_generation: 0, list_version: 0 };
    if (await saveReport(tx, { clusterId, side: 'kubernetes', columns }, report)) {
      tx.changed({ observedClusterId: clusterId });
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
  report: SideReport,
): Promise<boolean> {
  const { clusterId, side, columns } = about;
  const [before] = await rowOf(tx.db, clusterId, side);
  const at = toTime(tx.now);
  const text = JSON.stringify(withTransitionTimes(report, before && parseReport(before.report), at));
  tx.observationAges.recorded(clusterId, side, at);
  await saveObservation(tx.db, {
    cluster_id: clusterId,
    side,
    observed_at: at,
    ...columns,
    desired_generation: report.desiredGeneration,
    failure: report.failure,
    report: text,
  });
  await clearObserveFailure(tx, clusterId, side);
  // A control plane that does not answer names no machines; that is not the end of them.
  const { machines } = report;
  if (machines && (report.controlPlaneReady || machines.length > 0)) {
    await recordSideMachines(tx, { clusterId, side }, machines);
  }
  if (report.kubernetes) await updateKubernetesVersions(tx, clusterId, report.kubernetes);
  return before?.report !== text;
}

/** Of a cluster with another side, what that side said lately counts as well; until it spoke, none is retired. */
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

const saveObservation = prepared((db, row: ObservationRow) =>
  db
    .insertInto('observations')
    .values(row)
    .onConflict((conflict) => conflict.columns(['cluster_id', 'side']).doUpdateSet(row)),
);

/** Forgets what a cluster confirmed: its accounts are gone. */
export async function deleteObservedAccounts(store: Store, clusterId: string): Promise<void> {
  const { unnamed } = await compareAccounts(store.read, clusterId, []);
  await store.write(async (tx) => {
    await noteAllDropped(tx, clusterId);
    await tx.db
      .updateTable('observations')
      .set({ list_version: 0 })
      .where('cluster_id', '=', clusterId)
      .execute();
  });
  while (unnamed.length > 0) {
    const page = unnamed.splice(0, pageSize);
    await store.write((tx) => forgetAccounts(tx, clusterId, page), unflushed);
  }
}

/** The version that a cluster says it has; 0 when there never was such a one, as after a backup was restored. */
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

type AccountRow = Selectable<ObservedAccountTable>;

/** What is to be written, and about whom there is nothing more to be kept. */
async function compareAccounts(
  db: Reader,
  clusterId: string,
  accounts: SlurmReport['accounts'],
): Promise<{ named: AccountRow[]; unnamed: string[] }> {
  const before = new Map<string, AccountRow>();
  for (let after = ''; ; ) {
    const page = await accountsBehind(db, clusterId, after);
    for (const row of page) before.set(row.user_id, row);
    after = page.at(-1)?.user_id ?? '';
    if (page.length < pageSize) break;
  }
  const named: AccountRow[] = [];
  for (const account of accounts) {
    const row = {
      cluster_id: clusterId,
      user_id: account.userId,
      ssh_key_set_generation: account.keySetGeneration,
      key_fingerprints: JSON.stringify(account.keyFingerprints),
      shell: account.shell,
      login_state: account.loginState,
    };
    const earlier = before.get(account.userId);
    before.delete(account.userId);
    if (!earlier || !isSame(earlier, row)) named.push(row);
  }
  return { named, unnamed: [...before.keys()] };
}

const accountsBehind = prepared((db, clusterId: string, after: string) =>
  db
    .selectFrom('observed_accounts')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(pageSize),
);

function isSame(a: AccountRow, b: AccountRow): boolean {
  return (
    a.ssh_key_set_generation === b.ssh_key_set_generation &&
    a.key_fingerprints === b.key_fingerprints &&
    a.shell === b.shell &&
    a.login_state === b.login_state
  );
}

async function nameAccounts(tx: Tx, rows: readonly AccountRow[]): Promise<void> {
  for (const row of rows) {
    await tx.db
      .insertInto('observed_accounts')
      .values(row)
      .onConflict((conflict) => conflict.columns(['cluster_id', 'user_id']).doUpdateSet(row))
      .execute();
  }
}

async function forgetAccounts(tx: Tx, clusterId: string, userIds: readonly string[]): Promise<void> {
  for (const userId of userIds) {
    await tx.db
      .deleteFrom('observed_accounts')
      .where('cluster_id', '=', clusterId)
      .where('user_id', '=', userId)
      .execute();
  }
}

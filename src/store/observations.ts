/**
 * What clusters report; the latest report of each is kept. What a cluster confirmed of a person follows from the list
 * version that it has, so that a report costs a row and not one a person; only what it says of people by name is kept
 * by name.
 */
import type { Selectable } from 'kysely';
import { withTransitionTimes } from '../domain/condition.ts';
import type { Report } from '../domain/manifest.ts';
import type { Reader, Store, Tx } from './index.ts';
import { updateKubernetesVersions } from './kubernetes-versions.ts';
import { recordMachines } from './machines.ts';
import { prepared } from './prepared.ts';
import type { ObservationTable, ObservedAccountTable } from './schema.ts';
import { toTime } from './time.ts';

export type Observation = Selectable<ObservationTable>;

/** The part of a report that is kept as text: everything but the accounts. */
export type StoredReport = Omit<Report, 'accounts'>;

export async function findObservation(db: Reader, clusterId: string): Promise<Observation | undefined> {
  return (await observationOf(db, clusterId))[0];
}

const observationOf = prepared((db, clusterId: string) =>
  db.selectFrom('observations').selectAll().where('cluster_id', '=', clusterId),
);

/** What an observation says. */
export function reportOf(observation: Pick<Observation, 'report'>): StoredReport {
  return JSON.parse(observation.report) as StoredReport;
}

/** Accounts written in one go: few enough to take a few milliseconds. */
const pageSize = 200;
/** A report comes again soon, and every cluster's at every interval: none is worth stopping everyone for the disk. */
const unflushed = { flush: false };

/**
 * Keeps a report, and announces it when it says something new. Accounts that it names come first and those that it
 * names no more go last, so that nobody is unconfirmed in between.
 */
export async function recordObservation(
  store: Store,
  clusterId: string,
  report: Report,
  now: number,
): Promise<void> {
  const { accounts, ...rest } = report;
  const { named, unnamed } = await compareAccounts(store.read, clusterId, accounts);
  const isNews = named.length + unnamed.length > 0;
  while (named.length > pageSize) {
    const page = named.splice(0, pageSize);
    await store.write((tx) => nameAccounts(tx, page), unflushed);
  }
  await store.write(async (tx) => {
    await nameAccounts(tx, named);
    const before = await findObservation(tx.db, clusterId);
    const at = toTime(now);
    const text = JSON.stringify(withTransitionTimes(rest, before && reportOf(before), at));
    const row = {
      cluster_id: clusterId,
      observed_at: at,
      manifest_generation: report.manifestGeneration,
      desired_generation: report.desiredGeneration,
      list_version: await knownVersion(tx, clusterId, report.listVersion ?? 0),
      failure: report.failure,
      report: text,
    };
    await saveObservation(tx.db, row);
    // A control plane that does not answer names no machines; that is not the end of them.
    const { machines } = report;
    if (machines && (report.controlPlaneReady || machines.length > 0)) {
      await recordMachines(tx, clusterId, machines, now, report.partialMachines);
    }
    if (report.kubernetes) await updateKubernetesVersions(tx, clusterId, report.kubernetes, now);
    await forgetAccounts(tx, clusterId, unnamed.splice(0, pageSize));
    if (isNews || before?.report !== text) tx.changed({ observedClusterId: clusterId });
  }, unflushed);
  while (unnamed.length > 0) {
    const page = unnamed.splice(0, pageSize);
    await store.write((tx) => forgetAccounts(tx, clusterId, page), unflushed);
  }
}

const saveObservation = prepared((db, row: Observation) =>
  db
    .insertInto('observations')
    .values(row)
    .onConflict((conflict) => conflict.column('cluster_id').doUpdateSet(row)),
);

/** Forgets what a cluster confirmed: its accounts are gone. */
export async function deleteObservedAccounts(store: Store, clusterId: string): Promise<void> {
  const { unnamed } = await compareAccounts(store.read, clusterId, []);
  await store.write(async ({ db }) => {
    await db
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
  accounts: Report['accounts'],
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

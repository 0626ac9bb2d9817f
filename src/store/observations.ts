/** What clusters report. The latest report of each is kept, and per person what it confirmed. */
import type { Selectable } from 'kysely';
import type { LoginNodeReport, Report } from '../domain/manifest.ts';
import type { Reader, Store, Tx } from './index.ts';
import type { ObservationTable, ObservedAccountTable } from './schema.ts';
import { toTime } from './time.ts';

export type Observation = Selectable<ObservationTable>;

/** The part of a report that is kept as text: everything but the accounts. */
export type StoredReport = Omit<Report, 'accounts'>;

export async function findObservation(db: Reader, clusterId: string): Promise<Observation | undefined> {
  return db.selectFrom('observations').selectAll().where('cluster_id', '=', clusterId).executeTakeFirst();
}

/** What a cluster confirmed of one person. */
export async function findObservedAccount(
  db: Reader,
  clusterId: string,
  userId: string,
): Promise<Selectable<ObservedAccountTable> | undefined> {
  return db
    .selectFrom('observed_accounts')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
}

/** The login node that the gateway connects to: the first that the cluster last reported as up. */
export function loginNodeOf(report: string): LoginNodeReport | undefined {
  return (JSON.parse(report) as StoredReport).loginNodes.find((node) => node.up);
}

/** Keeps a report, and announces it when it says something new. */
export async function recordObservation(
  store: Store,
  clusterId: string,
  report: Report,
  now: number,
): Promise<void> {
  const { accounts, ...rest } = report;
  const text = JSON.stringify(rest);
  await store.write(async (tx) => {
    const before = await findObservation(tx.db, clusterId);
    const row = {
      cluster_id: clusterId,
      observed_at: toTime(now),
      manifest_generation: report.manifestGeneration,
      desired_generation: report.desiredGeneration,
      failure: report.failure,
      report: text,
    };
    await tx.db
      .insertInto('observations')
      .values(row)
      .onConflict((conflict) => conflict.column('cluster_id').doUpdateSet(row))
      .execute();
    const changed = await replaceAccounts(tx, clusterId, accounts);
    if (changed || before?.report !== text) tx.changed({ observedClusterId: clusterId });
  });
}

async function replaceAccounts(tx: Tx, clusterId: string, accounts: Report['accounts']): Promise<boolean> {
  const rows = await tx.db
    .selectFrom('observed_accounts')
    .select(['cluster_id', 'user_id', 'ssh_key_set_generation', 'key_fingerprints', 'shell', 'login_state'])
    .where('cluster_id', '=', clusterId)
    .execute();
  const before = new Map(rows.map((row) => [row.user_id, JSON.stringify(row)]));
  let changed = false;
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
    if (earlier === JSON.stringify(row)) continue;
    changed = true;
    await tx.db
      .insertInto('observed_accounts')
      .values(row)
      .onConflict((conflict) => conflict.columns(['cluster_id', 'user_id']).doUpdateSet(row))
      .execute();
  }
  for (const userId of before.keys()) {
    changed = true;
    await tx.db
      .deleteFrom('observed_accounts')
      .where('cluster_id', '=', clusterId)
      .where('user_id', '=', userId)
      .execute();
  }
  return changed;
}

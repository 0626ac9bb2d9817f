/**
 * Manifests: access lists as a driver applies them. The accounts are the same for all clusters of an organization, so
 * they are kept in memory once, for the version that the database says; only what changed since is read again.
 */
import type { Manifest, ManifestAccount } from '../domain/manifest.ts';
import { homeOf } from '../domain/username.ts';
import type { Reader, Store } from './index.ts';
import { createKept } from './kept.ts';
import { prepared } from './prepared.ts';
import { findSchedulerState } from './slurm-configurations.ts';

interface Accounts {
  version: number;
  /** By user ID. */
  accounts: readonly ManifestAccount[];
}

/** By organization. */
const keptOf = createKept<Accounts>();
/** Rows read in one go: few enough to take a few milliseconds. */
const pageSize = 250;

/** The accepted list as a driver applies it; undefined while the newest one is not accepted. */
export async function findManifest(store: Store, clusterId: string): Promise<Manifest | undefined> {
  const kept = keptOf(store);
  let list = await findAccepted(store.read, clusterId);
  if (!list) return undefined;
  let found = kept.get(list.organization_id);
  if (found?.version !== list.version) {
    // List and accounts of the same moment.
    [list, found] = await store.readSnapshot(async (db) => {
      const current = await findAccepted(db, clusterId);
      return [current, current && (await findAccounts(kept, db, current.organization_id, current.version))];
    });
  }
  if (!list || !found) return undefined;
  const scheduler = await findSchedulerState(store.read, clusterId);
  return {
    clusterId,
    generation: list.generation,
    desiredGeneration: list.desired_generation,
    ...scheduler,
    listVersion: list.version,
    accounts: found.accounts,
  };
}

/** A cluster's newest list with the version of whom it names; undefined while it is not accepted. */
async function findAccepted(db: Reader, clusterId: string) {
  return (await acceptedOf(db, clusterId))[0];
}

const acceptedOf = prepared((db, clusterId: string) =>
  db
    .selectFrom('access_lists as l')
    .innerJoin('clusters as c', 'c.id', 'l.cluster_id')
    .innerJoin('organization_access_lists as o', 'o.org_id', 'c.organization_id')
    .select(['l.generation', 'l.desired_generation', 'c.organization_id', 'o.version'])
    .where('l.cluster_id', '=', clusterId)
    .where('l.withdrawn', '=', 0)
    .whereRef('l.accepted_generation', '=', 'l.generation'),
);

/** The accounts of the version that stands; undefined while one of them has no number yet. */
async function findAccounts(
  kept: Map<string, Accounts>,
  db: Reader,
  organizationId: string,
  version: number,
): Promise<Accounts | undefined> {
  const before = kept.get(organizationId);
  if (before?.version === version) return before;
  const accounts = before
    ? await changedAccounts(db, organizationId, before)
    : await allAccounts(db, organizationId);
  if (!accounts) return undefined;
  const found = { version, accounts };
  kept.set(organizationId, found);
  return found;
}

async function allAccounts(db: Reader, organizationId: string): Promise<ManifestAccount[] | undefined> {
  const accounts: ManifestAccount[] = [];
  for (;;) {
    const rows = await entries(db, organizationId)
      .where('u.user_id', '>', accounts.at(-1)?.userId ?? '')
      .limit(pageSize)
      .execute();
    for (const row of rows) {
      const account = accountOf(row);
      if (!account) return undefined;
      accounts.push(account);
    }
    if (rows.length < pageSize) return accounts;
  }
}

async function changedAccounts(
  db: Reader,
  organizationId: string,
  before: Accounts,
): Promise<ManifestAccount[] | undefined> {
  const ended = await db
    .selectFrom('access_list_users')
    .select('user_id')
    .where('org_id', '=', organizationId)
    .where('until_version', '>', before.version)
    .execute();
  const begun = await entries(db, organizationId).where('u.since_version', '>', before.version).execute();
  const gone = new Set([...ended, ...begun].map((row) => row.user_id));
  const accounts = before.accounts.filter((account) => !gone.has(account.userId));
  for (const row of begun) {
    const account = accountOf(row);
    if (!account) return undefined;
    accounts.push(account);
  }
  return accounts.sort((a, b) => (a.userId < b.userId ? -1 : 1));
}

function entries(db: Reader, organizationId: string) {
  return db
    .selectFrom('access_list_users as u')
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'u.org_id').onRef('n.user_id', '=', 'u.user_id'),
    )
    .select([
      'u.user_id',
      'u.username',
      'u.desired_login_state',
      'u.ssh_key_set_generation',
      'u.key_fingerprints',
      'u.shell',
      'n.uid',
    ])
    .where('u.org_id', '=', organizationId)
    .where('u.until_version', 'is', null)
    .orderBy('u.user_id');
}

function accountOf(
  row: Awaited<ReturnType<ReturnType<typeof entries>['execute']>>[number],
): ManifestAccount | undefined {
  const { uid, username } = row;
  if (uid === null) return undefined;
  return {
    userId: row.user_id,
    username,
    uid,
    gid: uid,
    home: homeOf(username),
    shell: row.shell,
    loginState: row.desired_login_state,
    keySetGeneration: row.ssh_key_set_generation,
    keyFingerprints: JSON.parse(row.key_fingerprints) as string[],
  };
}

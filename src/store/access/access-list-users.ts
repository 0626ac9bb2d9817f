/**
 * The people on the access lists of an organization's clusters. There is one list per organization, in versions: a
 * change of one person writes one row and raises the version, and the generation of every cluster's list with it.
 */
import { type AccessListUser, accessListUser, isSameEntry } from '../../domain/access/manifest.ts';
import type { Silence } from '../../domain/clusters/cluster.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { insertRow, updateRows } from '../engine/rows.ts';
import { createLapses, type Lapses, toTime } from '../engine/time.ts';
import { livePermissions } from '../organizations/memberships.ts';
import { allocateNumbers } from './numbers.ts';

/** People in one page: few enough to take a few milliseconds. */
const pageSize = 200;

/** People by ID, both ends included. */
interface UserRange {
  from: string;
  to: string;
}

/** The organizations whose members Slurm clusters must know. */
export async function listListedOrganizations(db: Reader): Promise<string[]> {
  return (await listed(db)).map((row) => row.organization_id);
}

/** Updates one person's entries to their current access and keys; returns the organizations whose list changed. */
export async function updateListedUser(store: Store, userId: string): Promise<string[]> {
  const changed: string[] = [];
  for (const { organization_id: organizationId } of await listedOf(store.read, userId)) {
    if (await updateEntries(store, organizationId, { from: userId, to: userId }))
      changed.push(organizationId);
  }
  return changed;
}

/**
 * Updates every entry of an organization likewise, a page of people at a time; returns whether its list changed.
 * Changes made meanwhile are handled by their own announcement, or by the next call.
 */
export async function updateListedUsers(store: Store, organizationId: string): Promise<boolean> {
  let changed = false;
  for await (const range of rangesOf(store.read, organizationId))
    if (await updateEntries(store, organizationId, range)) changed = true;
  return changed;
}

/** The people who should be on an organization's lists, by ID, whatever the lists have now; as if no key lapsed. */
export async function listWantedUsers(
  db: Reader,
  organizationId: string,
  now: number,
): Promise<AccessListUser[]> {
  const users: AccessListUser[] = [];
  for await (const range of rangesOf(db, organizationId))
    users.push(...(await listWantedIn(db, organizationId, range, now)));
  return users;
}

/** The entry that one person should have; undefined where no list is to name them. */
export async function findWantedUser(
  db: Reader,
  organizationId: string,
  userId: string,
  now: number,
): Promise<AccessListUser | undefined> {
  return (await listWantedIn(db, organizationId, { from: userId, to: userId }, now))[0];
}

async function listWantedIn(
  db: Reader,
  organizationId: string,
  range: UserRange,
  now: number,
): Promise<AccessListUser[]> {
  const entries = await listEntries(
    db,
    organizationId,
    range,
    createLapses({}, Date.now, () => now),
  );
  return entries.flatMap(({ wanted }) => wanted ?? []);
}

/** A person's entry as it stands and as it should be (undefined: none), and the version of the list that changed it last. */
export interface Listing {
  listed: AccessListUser | undefined;
  wanted: AccessListUser | undefined;
  /** 0 where the person never had an entry, or all of theirs were deleted (`deletePastEntries`). */
  changedIn: number;
}

export async function findListing(
  { read: db, lapses }: Pick<Store, 'read' | 'lapses'>,
  organizationId: string,
  userId: string,
): Promise<Listing> {
  const [[entry], changed] = await Promise.all([
    listEntries(db, organizationId, { from: userId, to: userId }, lapses),
    db
      .selectFrom('access_list_users')
      .select((eb) => eb.fn.max(eb.fn.coalesce('until_version', 'since_version')).as('version'))
      .where('org_id', '=', organizationId)
      .where('user_id', '=', userId)
      .executeTakeFirst(),
  ]);
  return { listed: entry?.listed, wanted: entry?.wanted, changedIn: changed?.version ?? 0 };
}

/** Current and former members of an organization, a page at a time: reading them all at once takes twice as long. */
async function* rangesOf(db: Reader, organizationId: string): AsyncGenerator<UserRange> {
  for (let after = ''; ; ) {
    const page = await pageBehind(db, organizationId, after);
    const [first, last] = [page[0], page.at(-1)];
    if (!first || !last) return;
    yield { from: first.user_id, to: last.user_id };
    after = last.user_id;
  }
}

const pageBehind = prepared((db, organizationId: string, after: string) =>
  db
    .selectFrom('memberships')
    .select('user_id')
    .where('org_id', '=', organizationId)
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(pageSize),
);

/** Deletes ended entries that no cluster's list version includes any more. */
export async function deletePastEntries(store: Store, organizationId: string): Promise<void> {
  const reports = await store.read
    .selectFrom('observations as o')
    .innerJoin('clusters as c', 'c.id', 'o.cluster_id')
    .where('c.organization_id', '=', organizationId)
    .where('o.side', '=', 'slurm')
    .where('o.list_version', '>', 0)
    .select(['o.list_version', 'o.report'])
    .execute();
  // A host with an older list still needs the changes made after it.
  const oldest = Math.min(
    ...reports.flatMap(({ list_version, report }) => {
      const { waiting = [] } = JSON.parse(report) as Silence;
      return [list_version, ...waiting.map(({ listVersion = 0 }) => listVersion)];
    }),
  );
  if (reports.length === 0) return;
  const isPast = (db: Reader) =>
    db
      .selectFrom('access_list_users')
      .select('user_id')
      .where('org_id', '=', organizationId)
      .where('until_version', '<=', oldest);
  if (!(await isPast(store.read).limit(1).executeTakeFirst())) return;
  await store.write(
    ({ db }) =>
      db
        .deleteFrom('access_list_users')
        .where('org_id', '=', organizationId)
        .where('until_version', '<=', oldest)
        .execute(),
    { flush: false },
  );
}

async function updateEntries(store: Store, organizationId: string, range: UserRange): Promise<boolean> {
  const { lapses } = store;
  if ((await listDifferences(store.read, organizationId, range, lapses)).length === 0) return false;
  return store.write(async (tx) => {
    const differences = await listDifferences(tx.db, organizationId, range, lapses);
    if (differences.length === 0) return false;
    const version = await raiseVersion(tx, organizationId);
    for (const { userId, listed, wanted } of differences) {
      const entry = { org_id: organizationId, user_id: userId, until_version: null };
      if (listed) await updateRows(tx.db, 'access_list_users', entry, { until_version: version });
      if (wanted) await insertRow(tx.db, 'access_list_users', rowOf(organizationId, wanted, version));
    }
    await allocateNumbers(tx, organizationId);
    return true;
  });
}

/** The people whose entry differs from the wanted one. */
async function listDifferences(
  db: Reader,
  organizationId: string,
  range: UserRange,
  lapses: Lapses,
): Promise<EntryState[]> {
  return (await listEntries(db, organizationId, range, lapses)).filter(
    ({ listed, wanted }) => !isSameEntry(listed, wanted),
  );
}

/** A person's entry as it stands, and as it should be; undefined: none. */
interface EntryState {
  userId: string;
  listed: AccessListUser | undefined;
  wanted: AccessListUser | undefined;
}

async function listEntries(
  db: Reader,
  organizationId: string,
  { from, to }: UserRange,
  lapses: Lapses,
): Promise<EntryState[]> {
  const registeredAfter = lapses.registeredAfter();
  const [rows, granted, keys] = await Promise.all([
    entriesIn(db, organizationId, from, to),
    grantedIn(db, organizationId, from, to, lapses.endedBy()),
    activeKeysIn(db, organizationId, from, to),
  ]);
  const permissions = Map.groupBy(granted, (row) => row.user_id);
  const keysOf = Map.groupBy(keys, (row) => row.user_id);
  return rows.map((row) => {
    const userId = row.user_id;
    const { username, role, login_shell: shell } = row;
    if (row.lifecycle_state !== 'active' || username === null) {
      return { userId, listed: entryOf(row), wanted: undefined };
    }
    const own = keysOf.get(userId) ?? [];
    const good = own.filter((key) => key.created_at > registeredAfter);
    const wanted = accessListUser({
      userId,
      username,
      role,
      permissions: (permissions.get(userId) ?? []).map(({ permission }) => permission),
      shell,
      keySetGeneration: row.generation ?? 0,
      keyFingerprints: own.map(({ fingerprint }) => fingerprint),
      goodKeys: good.map(({ fingerprint }) => fingerprint),
    });
    return { userId, listed: entryOf(row), wanted };
  });
}

function entryOf(row: Awaited<ReturnType<typeof entriesIn>>[number]): AccessListUser | undefined {
  const { user_id, listed_username, access_mode, desired_login_state, listed_generation, key_fingerprints } =
    row;
  if (listed_username === null || access_mode === null || desired_login_state === null) return undefined;
  return {
    userId: user_id,
    username: listed_username,
    accessMode: access_mode,
    desiredLoginState: desired_login_state,
    keySetGeneration: listed_generation ?? 0,
    keyFingerprints: JSON.parse(key_fingerprints ?? '[]') as string[],
    shell: row.shell ?? '',
  };
}

function rowOf(organizationId: string, user: AccessListUser, version: number) {
  return {
    org_id: organizationId,
    user_id: user.userId,
    since_version: version,
    until_version: null,
    username: user.username,
    access_mode: user.accessMode,
    desired_login_state: user.desiredLoginState,
    ssh_key_set_generation: user.keySetGeneration,
    key_fingerprints: JSON.stringify(user.keyFingerprints),
    shell: user.shell,
  };
}

/** Raises the version of an organization's list, and the generation of all its clusters' lists; returns the version. */
export async function raiseVersion(tx: Tx, organizationId: string): Promise<number> {
  const { version } = await tx.db
    .insertInto('organization_access_lists')
    .values({ org_id: organizationId, version: 1 })
    .onConflict((conflict) =>
      conflict
        .column('org_id')
        .doUpdateSet((eb) => ({ version: eb('organization_access_lists.version', '+', 1) })),
    )
    .returning('version')
    .executeTakeFirstOrThrow();
  await tx.db
    .updateTable('access_lists')
    .set((eb) => ({ generation: eb('generation', '+', 1), updated_at: toTime(tx.now) }))
    .where('withdrawn', '=', 0)
    .where('cluster_id', 'in', (eb) =>
      eb.selectFrom('clusters').select('id').where('organization_id', '=', organizationId),
    )
    .execute();
  return version;
}

const listed = prepared((db) => slurmOrganizations(db));

const listedOf = prepared((db, userId: string) =>
  slurmOrganizations(db)
    .innerJoin('memberships as m', 'm.org_id', 'c.organization_id')
    .where('m.user_id', '=', userId),
);

function slurmOrganizations(db: Reader) {
  return db
    .selectFrom('clusters as c')
    .select('c.organization_id')
    .distinct()
    .where('c.scheduler', '=', 'sunk')
    .where('c.state', 'in', ['provisioning', 'active']);
}

/** All people who are or were members, with their entry where they have one. */
const entriesIn = prepared((db, organizationId: string, from: string, to: string) =>
  db
    .selectFrom('memberships as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'm.org_id').onRef('n.user_id', '=', 'm.user_id'),
    )
    .leftJoin('ssh_key_sets as s', 's.user_id', 'm.user_id')
    .leftJoin('access_list_users as l', (join) =>
      join
        .onRef('l.org_id', '=', 'm.org_id')
        .onRef('l.user_id', '=', 'm.user_id')
        .on('l.until_version', 'is', null),
    )
    .select([
      'm.user_id',
      'm.role',
      'm.lifecycle_state',
      'u.login_shell',
      'n.username',
      's.generation',
      'l.username as listed_username',
      'l.access_mode',
      'l.desired_login_state',
      'l.ssh_key_set_generation as listed_generation',
      'l.key_fingerprints',
      'l.shell',
    ])
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '>=', from)
    .where('m.user_id', '<=', to)
    .orderBy('m.user_id'),
);

const grantedIn = prepared((db, organizationId: string, from: string, to: string, at: string) =>
  livePermissions(db, at)
    .select(['p.user_id', 'p.what as permission'])
    .where('p.org_id', '=', organizationId)
    .where('p.user_id', '>=', from)
    .where('p.user_id', '<=', to),
);

const activeKeysIn = prepared((db, organizationId: string, from: string, to: string) =>
  db
    .selectFrom('memberships as m')
    .innerJoin('ssh_keys as k', 'k.user_id', 'm.user_id')
    .select(['k.user_id', 'k.fingerprint', 'k.created_at'])
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '>=', from)
    .where('m.user_id', '<=', to)
    .where('k.lifecycle_state', '=', 'active')
    .orderBy('k.id'),
);

/** What an identity provider pushes over SCIM: its tokens, the people it knows, and its groups. */
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { markBehind } from './pushed-groups.ts';

/** The SHA-256 of each valid token, oldest first. */
export async function listScimTokens(db: Reader): Promise<{ hash: string; createdAt: string }[]> {
  const rows = await listRows(db, 'scim_tokens', {}, 'created_at', 'hash');
  return rows.map(({ hash, created_at: createdAt }) => ({ hash, createdAt }));
}

export async function addScimToken(tx: Tx, hash: string): Promise<void> {
  await insertRow(tx.db, 'scim_tokens', { hash, created_at: toTime(tx.now) });
}

export async function deleteScimTokens(tx: Tx): Promise<void> {
  await deleteRows(tx.db, 'scim_tokens', {});
}

/** A person as the identity provider sent them, and whether they are active here. */
export interface ScimUserRecord {
  userId: string;
  externalId: string | null;
  /** As JSON, with `userName` as it was written. */
  attributes: string;
  isActive: boolean;
  createdAt: string;
  updatedAt: string;
}

type Kept = Pick<ScimUserRecord, 'userId' | 'externalId' | 'attributes'> & { userName: string };

function users(db: Reader) {
  return db
    .selectFrom('scim_users as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .select([
      's.user_id as userId',
      's.external_id as externalId',
      's.attributes',
      's.created_at as createdAt',
      's.updated_at as updatedAt',
      'u.lifecycle_state as state',
      'u.updated_at as personUpdatedAt',
    ])
    .orderBy('s.user_id');
}

type Row = Awaited<ReturnType<ReturnType<typeof users>['execute']>>[number];

function recordOf({ state, personUpdatedAt, updatedAt, ...row }: Row): ScimUserRecord {
  const later = personUpdatedAt > updatedAt ? personUpdatedAt : updatedAt;
  return { ...row, isActive: state === 'active', updatedAt: later };
}

const rowsById = prepared((db, userId: string) => users(db).where('s.user_id', '=', userId));
const rowsByName = prepared((db, userName: string) => users(db).where('s.user_name', '=', userName));

export async function findScimUser(db: Reader, userId: string): Promise<ScimUserRecord | undefined> {
  const [row] = await rowsById(db, userId);
  return row && recordOf(row);
}

/** The one with this name, in any case. */
export async function findScimUserByName(db: Reader, userName: string): Promise<ScimUserRecord | undefined> {
  const [row] = await rowsByName(db, userName.toLowerCase());
  return row && recordOf(row);
}

/** Some of those that are known, in order of their IDs. */
export async function listScimUsers(
  db: Reader,
  page: { after?: string; offset?: number; limit: number; externalId?: string },
): Promise<ScimUserRecord[]> {
  const { after = '', offset = 0, limit, externalId } = page;
  let query = users(db).where('s.user_id', '>', after).limit(limit).offset(offset);
  if (externalId !== undefined) query = query.where('s.external_id', '=', externalId);
  return (await query.execute()).map(recordOf);
}

export async function countScim(db: Reader, table: 'scim_users' | 'scim_groups'): Promise<number> {
  const { count } = await db
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Keeps what was sent of a person, in the place of what there was. */
export async function saveScimUser(
  tx: Tx,
  { userId, userName, externalId, attributes }: Kept,
): Promise<void> {
  const at = toTime(tx.now);
  const row = { user_name: userName.toLowerCase(), external_id: externalId, attributes, updated_at: at };
  const known = await findRow(tx.db, 'scim_users', { user_id: userId });
  if (known) await updateRows(tx.db, 'scim_users', { user_id: userId }, row);
  else await insertRow(tx.db, 'scim_users', { ...row, user_id: userId, is_behind: 1, created_at: at });
}

/** Forgets what was sent of a person, who is in no group any more. */
export async function deleteScimUser(tx: Tx, userId: string): Promise<void> {
  await deleteRows(tx.db, 'scim_group_members', { user_id: userId });
  await deleteRows(tx.db, 'scim_users', { user_id: userId });
}

/** A group of the identity provider, without its members. */
export interface ScimGroupRecord {
  id: string;
  displayName: string;
  externalId: string | null;
  createdAt: string;
  updatedAt: string;
}

function groups(db: Reader) {
  return db
    .selectFrom('scim_groups')
    .select([
      'id',
      'display_name as displayName',
      'external_id as externalId',
      'created_at as createdAt',
      'updated_at as updatedAt',
    ])
    .orderBy('id');
}

export function findScimGroup(db: Reader, id: string): Promise<ScimGroupRecord | undefined> {
  return groups(db).where('id', '=', id).executeTakeFirst();
}

/** Some of those that are known, in order of their IDs. */
export function listScimGroups(
  db: Reader,
  { after = '', offset = 0, limit }: { after?: string; offset?: number; limit: number },
): Promise<ScimGroupRecord[]> {
  return groups(db).where('id', '>', after).limit(limit).offset(offset).execute();
}

/** The members of groups, by the group's ID, in order. */
export async function listScimMembers(db: Reader, ids: readonly string[]): Promise<Map<string, string[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('scim_group_members')
    .select(['group_id as id', 'user_id as userId'])
    .where('group_id', 'in', ids)
    .orderBy('user_id')
    .execute();
  const byGroup = Map.groupBy(rows, ({ id }) => id);
  return new Map(ids.map((id) => [id, (byGroup.get(id) ?? []).map(({ userId }) => userId)]));
}

const atOnce = 400;

/** Which of these people the identity provider did not send. */
export async function listUnknownMembers(db: Reader, userIds: readonly string[]): Promise<string[]> {
  const known = new Set<string>();
  for (let from = 0; from < userIds.length; from += atOnce) {
    const part = userIds.slice(from, from + atOnce);
    const rows = await db
      .selectFrom('scim_users')
      .select('user_id as id')
      .where('user_id', 'in', part)
      .execute();
    for (const { id } of rows) known.add(id);
  }
  return userIds.filter((id) => !known.has(id));
}

/** Keeps a group with exactly these members, who are known. */
export async function saveScimGroup(
  tx: Tx,
  group: { id: string; displayName: string; externalId: string | null; members: readonly string[] },
): Promise<void> {
  const { id, displayName, externalId, members } = group;
  const at = toTime(tx.now);
  const row = { display_name: displayName, external_id: externalId, updated_at: at };
  const known = await findScimGroup(tx.db, id);
  if (known) await updateRows(tx.db, 'scim_groups', { id }, row);
  else await insertRow(tx.db, 'scim_groups', { ...row, id, created_at: at });
  const before = new Set((await listScimMembers(tx.db, [id])).get(id));
  const after = new Set(members);
  const added = [...after.difference(before)];
  const gone = [...before.difference(after)];
  const isRenamed = known !== undefined && known.displayName !== displayName;
  await markBehind(tx, isRenamed ? [...before.union(after)] : [...added, ...gone], true);
  for (let from = 0; from < added.length; from += atOnce) {
    const rows = added.slice(from, from + atOnce).map((userId) => ({ group_id: id, user_id: userId }));
    await tx.db.insertInto('scim_group_members').values(rows).execute();
  }
  for (let from = 0; from < gone.length; from += atOnce) {
    const part = gone.slice(from, from + atOnce);
    await tx.db
      .deleteFrom('scim_group_members')
      .where('group_id', '=', id)
      .where('user_id', 'in', part)
      .execute();
  }
}

export async function deleteScimGroup(tx: Tx, id: string): Promise<void> {
  await markBehind(tx, (await listScimMembers(tx.db, [id])).get(id) ?? [], true);
  await deleteRows(tx.db, 'scim_group_members', { group_id: id });
  await deleteRows(tx.db, 'scim_groups', { id });
}

/** Memberships, the permissions of members with their ends, and login names; `membership-changes.ts` changes them. */
import type { ExpressionBuilder } from 'kysely';
import {
  effectivePermissions,
  type GrantedPermission,
  laterEnd,
  type Role,
  withLatestEnds,
} from '../../domain/access/permission.ts';
import type { Membership } from '../../domain/organizations/membership.ts';
import type { Reader } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

/** The people whose permissions end after one time and not after another, both in ms since 1970. */
export async function listEndedBetween(db: Reader, from: number, to: number): Promise<string[]> {
  if (from >= to) return [];
  const rows = await openPermissions(db)
    .select('p.user_id')
    .distinct()
    .where('p.expires_at', '>', toTime(from))
    .where('p.expires_at', '<=', toTime(to))
    .execute();
  return rows.map((row) => row.user_id);
}

/** The time at which the next permission ends, in ms since 1970; undefined where none will. */
export async function findNextEnd(db: Reader, now: number): Promise<number | undefined> {
  const ends = openPermissions(db).select('p.expires_at').where('p.expires_at', '>', toTime(now));
  const row = await ends.orderBy('p.expires_at').limit(1).executeTakeFirst();
  return row?.expires_at == null ? undefined : fromTime(row.expires_at);
}

/** A member's permissions that ended by themselves after one time and not after another, both in ms since 1970. */
export async function listEndedOf(
  db: Reader,
  { organizationId, userId }: { organizationId: string; userId: string },
  from: number,
  to: number,
): Promise<GrantedPermission[]> {
  const rows = await openPermissions(db)
    .select(['p.what as key', 'p.expires_at as expiresAt'])
    .where('p.org_id', '=', organizationId)
    .where('p.user_id', '=', userId)
    .execute();
  const [after, until] = [toTime(from), toTime(to)];
  return withLatestEnds(rows).filter(({ expiresAt: end }) => end !== null && end > after && end <= until);
}

/** The active memberships of a person, oldest first; and whether any permission there has an end, past or to come. */
export async function listMembershipsOf(
  db: Reader,
  userId: string,
): Promise<(Membership & { hasEnds: boolean })[]> {
  const rows = await membershipsOf(db, userId);
  return rows.map((row) => ({ ...membershipOf(row), hasEnds: row.ends !== null }));
}

const membershipsOf = prepared((db, userId: string) =>
  memberships(db)
    .select((eb) =>
      eb
        .selectFrom('holdings as p')
        .select((of) => of.fn.min('p.expires_at').as('first'))
        .where('p.kind', '=', 'permission')
        .where('p.ended_at', 'is', null)
        .whereRef('p.org_id', '=', 'm.org_id')
        .whereRef('p.user_id', '=', 'm.user_id')
        .as('ends'),
    )
    .where('m.user_id', '=', userId),
);

/** Rows per query; other queries wait while it runs. */
const pageSize = 500;

/**
 * An organization's active members, oldest membership first. It yields to the event loop between pages, so a
 * consistent list needs a transaction or a snapshot.
 */
export async function listMembers(db: Reader, organizationId: string): Promise<Membership[]> {
  const members: Membership[] = [];
  let after = '';
  for (;;) {
    const page = await membersAfter(db, organizationId, after);
    for (const row of page) members.push(membershipOf(row));
    const last = page.at(-1);
    if (!last || page.length < pageSize) return members.sort(byAge);
    after = last.userId;
  }
}

const membersAfter = prepared((db, organizationId: string, after: string) =>
  membershipRows(db)
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '>', after)
    // Without this, PostgreSQL would begin every page at the first of all names.
    .where('n.user_id', '>', after)
    .orderBy('m.user_id')
    .limit(pageSize),
);

function byAge(a: Membership, b: Membership): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.userId < b.userId ? -1 : 1;
}

/** The display names of active members with these login names, by login name. */
export async function listNamesOfMembers(
  db: Reader,
  organizationId: string,
  usernames: readonly string[],
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (let from = 0; from < usernames.length; from += mostNames) {
    const some = usernames.slice(from, from + mostNames);
    for (const { username, name } of await namesOfSome(db, organizationId, some)) names.set(username, name);
  }
  return names;
}

function namesOfSome(db: Reader, organizationId: string, usernames: readonly string[]) {
  return db
    .selectFrom('organization_usernames as n')
    .innerJoin('memberships as m', (join) =>
      join.onRef('m.org_id', '=', 'n.org_id').onRef('m.user_id', '=', 'n.user_id'),
    )
    .innerJoin('users as u', 'u.id', 'n.user_id')
    .select(['n.username', 'u.display_name as name'])
    .where('n.org_id', '=', organizationId)
    .where('n.username', 'in', usernames)
    .where('m.lifecycle_state', '=', 'active')
    .execute();
}

/** Names per query. */
const mostNames = 500;

/** A version that changes with an organization's lists of members, login names and what members were granted. */
export async function findMembersVersion(db: Reader, organizationId: string): Promise<string> {
  const row = await findRow(db, 'member_versions', { org_id: organizationId });
  return String(row?.version ?? 0);
}

/** The active membership of a person; undefined where there is none. */
export async function findMember(
  db: Reader,
  organizationId: string,
  userId: string,
): Promise<Membership | undefined> {
  const row = await memberships(db)
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '=', userId)
    .executeTakeFirst();
  return row && membershipOf(row);
}

/**
 * The permissions of each member of an organization that were granted directly and have not ended at `now`, by key. It
 * yields to the event loop between pages.
 */
export async function listAllGrantedPermissions(
  db: Reader,
  organizationId: string,
  now: number,
): Promise<Map<string, GrantedPermission[]>> {
  const granted = new Map<string, GrantedPermission[]>();
  let last: GrantedRow = { user_id: '', what: '', source: 'hand', expires_at: null };
  for (;;) {
    const page = await grantedAfter(db, organizationId, toTime(now), last);
    for (const { user_id: userId, what: key, expires_at: expiresAt } of page) {
      const own = granted.get(userId);
      const before = own?.at(-1);
      if (before?.key === key) before.expiresAt = laterEnd(before.expiresAt, expiresAt);
      else if (own) own.push({ key, expiresAt });
      else granted.set(userId, [{ key, expiresAt }]);
    }
    last = page.at(-1) ?? last;
    if (page.length < pageSize) return granted;
  }
}

type GrantedRow = Pick<Schema['holdings'], 'user_id' | 'what' | 'source' | 'expires_at'>;

function grantedAfter(db: Reader, organizationId: string, at: string, after: GrantedRow) {
  return livePermissions(db, at)
    .select(['p.user_id', 'p.what', 'p.source', 'p.expires_at'])
    .where('p.org_id', '=', organizationId)
    .where('p.user_id', '>=', after.user_id)
    .where((eb) =>
      eb.or([
        eb('p.user_id', '>', after.user_id),
        eb('p.what', '>', after.what),
        eb('p.what', '=', after.what).and('p.source', '>', after.source),
      ]),
    )
    .orderBy('p.user_id')
    .orderBy('p.what')
    .orderBy('p.source')
    .limit(pageSize)
    .execute();
}

/** A member's permissions that were granted directly and have not ended at `now`, in order of the keys; none for owners and admins. */
export async function listGrantedPermissions(
  db: Reader,
  organizationId: string,
  userId: string,
  now: number,
): Promise<readonly GrantedPermission[]> {
  return (await findMembership(db, organizationId, userId, now))?.granted ?? [];
}

/** The time at which the last permission of an organization ended by itself; '' where none has. */
export async function findLastEnd(db: Reader, organizationId: string, now: number): Promise<string> {
  const [row] = await lastEndOf(db, organizationId, toTime(now));
  return row?.expires_at ?? '';
}

const lastEndOf = prepared((db, organizationId: string, at: string) =>
  openPermissions(db)
    .select('p.expires_at')
    .where('p.org_id', '=', organizationId)
    .where('p.expires_at', '<=', at)
    .orderBy('p.expires_at', 'desc')
    .limit(1),
);

/** The permissions (`p`) that were not taken away, ended ones included. A key can have a row by hand and one by rules. */
function openPermissions(db: Reader) {
  return db.selectFrom('holdings as p').where('p.kind', '=', 'permission').where('p.ended_at', 'is', null);
}

/** The permissions (`p`) that are held at a time (RFC 3339): the beginning of every query that reads only them. */
export function livePermissions(db: Reader, at: string) {
  return db.selectFrom('holdings as p').where(isLive(at));
}

/** Condition: the row (`p`) is a permission that is held at a time (RFC 3339). */
export function isLive(at: string) {
  return (eb: ExpressionBuilder<Schema & { p: Schema['holdings'] }, 'p'>) =>
    eb.and([
      eb('p.kind', '=', 'permission'),
      eb('p.ended_at', 'is', null),
      eb.or([eb('p.expires_at', 'is', null), eb('p.expires_at', '>', at)]),
    ]);
}

/** A person's role and permissions in an organization at `now`; undefined when they are not an active member. */
export async function findMembership(
  db: Reader,
  organizationId: string,
  userId: string,
  now: number,
): Promise<
  { role: Role; permissions: ReadonlySet<string>; granted: readonly GrantedPermission[] } | undefined
> {
  const rows = await holdings(db, organizationId, userId);
  const [first] = rows;
  if (!first) return undefined;
  const at = toTime(now);
  const { role } = first;
  const live = rows.flatMap(({ what: key, expires_at: expiresAt }) =>
    key === null || (expiresAt !== null && expiresAt <= at) ? [] : [{ key, expiresAt }],
  );
  const granted = role === 'member' ? withLatestEnds(live) : [];
  const keys = granted.map(({ key }) => key);
  return { role, permissions: effectivePermissions(role, keys), granted };
}

const holdings = prepared((db, organizationId: string, userId: string) =>
  db
    .selectFrom('memberships as m')
    .leftJoin('holdings as p', (join) =>
      join
        .onRef('p.org_id', '=', 'm.org_id')
        .onRef('p.user_id', '=', 'm.user_id')
        .on('p.kind', '=', 'permission')
        .on('p.ended_at', 'is', null),
    )
    .select(['m.role', 'p.what', 'p.expires_at'])
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '=', userId)
    .where('m.lifecycle_state', '=', 'active'),
);

/** Whether there is a membership row, active or not: someone who was removed does not join by themselves again. */
export async function wasEverMember(db: Reader, organizationId: string, userId: string): Promise<boolean> {
  const row = await findRow(db, 'memberships', { org_id: organizationId, user_id: userId });
  return row !== undefined;
}

/** The end of a person's membership; undefined for members, and for people who never were. */
export async function findPastMembership(
  db: Reader,
  organizationId: string,
  userId: string,
): Promise<{ endedAt: string } | undefined> {
  const row = await findRow(db, 'memberships', { org_id: organizationId, user_id: userId });
  return row?.lifecycle_state === 'removed' ? { endedAt: row.updated_at } : undefined;
}

function memberships(db: Reader) {
  return membershipRows(db).orderBy('m.created_at').orderBy('m.user_id');
}

function membershipRows(db: Reader) {
  return db
    .selectFrom('memberships as m')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'm.org_id').onRef('n.user_id', '=', 'm.user_id'),
    )
    .where('m.lifecycle_state', '=', 'active')
    .select((eb) => [
      'm.org_id as organizationId',
      'm.user_id as userId',
      // A subquery for each row, by its index: PostgreSQL would read all users for a join with a page of members.
      eb
        .selectFrom('users as u')
        .select('u.primary_email')
        .whereRef('u.id', '=', 'm.user_id')
        .$asScalar()
        .$notNull()
        .as('email'),
      'm.role',
      'm.created_at as createdAt',
      'm.updated_at as updatedAt',
      'm.review_from as reviewFrom',
      'n.id as usernameId',
      'n.username',
      'n.source',
      'n.lifecycle_state as usernameState',
      'n.created_at as usernameCreatedAt',
      'n.frozen_at as frozenAt',
    ]);
}

function membershipOf(
  row: Awaited<ReturnType<ReturnType<typeof memberships>['execute']>>[number],
): Membership {
  const { usernameId: id, username, source, usernameState, usernameCreatedAt, frozenAt, ...member } = row;
  const name = { id, username, source, createdAt: usernameCreatedAt, frozenAt };
  return { ...member, lifecycleState: 'active', username: { ...name, lifecycleState: usernameState } };
}

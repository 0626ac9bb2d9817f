/** Memberships, what members may do, and their login names, as they are; `membership-changes.ts` changes them. */
import type { Membership } from '../domain/membership.ts';
import { effectivePermissions, type Role } from '../domain/permission.ts';
import type { Reader } from './index.ts';
import { prepared } from './prepared.ts';

/** The active memberships of a person, oldest first. */
export async function listMembershipsOf(db: Reader, userId: string): Promise<Membership[]> {
  return (await membershipsOf(db, userId)).map(membershipOf);
}

const membershipsOf = prepared((db, userId: string) => memberships(db).where('m.user_id', '=', userId));

/** An organization's active members, oldest membership first. */
export async function listMembers(db: Reader, organizationId: string): Promise<Membership[]> {
  return (await membersOf(db, organizationId)).map(membershipOf);
}

const membersOf = prepared((db, organizationId: string) =>
  memberships(db).where('m.org_id', '=', organizationId),
);

/** One active membership. */
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

/** The keys granted to each member of an organization directly, in order. */
export async function listAllGrantedPermissions(
  db: Reader,
  organizationId: string,
): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('member_permissions')
    .select(['user_id', 'permission'])
    .where('org_id', '=', organizationId)
    .orderBy('user_id')
    .orderBy('permission')
    .execute();
  const granted = new Map<string, string[]>();
  for (const { user_id, permission } of rows) {
    const keys = granted.get(user_id);
    if (keys) keys.push(permission);
    else granted.set(user_id, [permission]);
  }
  return granted;
}

/** The keys granted to a member directly, in order. */
export async function listGrantedPermissions(
  db: Reader,
  organizationId: string,
  userId: string,
): Promise<string[]> {
  const rows = await db
    .selectFrom('member_permissions')
    .select('permission')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .orderBy('permission')
    .execute();
  return rows.map((row) => row.permission);
}

/** What a person holds in an organization; undefined when they are not an active member. */
export async function findMembership(
  db: Reader,
  organizationId: string,
  userId: string,
): Promise<{ role: Role; permissions: ReadonlySet<string> } | undefined> {
  const rows = await holdings(db, organizationId, userId);
  const [first] = rows;
  if (!first) return undefined;
  const granted = rows.flatMap((row) => (row.permission === null ? [] : [row.permission]));
  return { role: first.role, permissions: effectivePermissions(first.role, granted) };
}

const holdings = prepared((db, organizationId: string, userId: string) =>
  db
    .selectFrom('memberships as m')
    .leftJoin('member_permissions as p', (join) =>
      join.onRef('p.org_id', '=', 'm.org_id').onRef('p.user_id', '=', 'm.user_id'),
    )
    .select(['m.role', 'p.permission'])
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', '=', userId)
    .where('m.lifecycle_state', '=', 'active'),
);

/** Whether there is a membership row, active or not: someone who was removed does not join by themselves again. */
export async function wasEverMember(db: Reader, organizationId: string, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('memberships')
    .select('role')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row !== undefined;
}

/** When somebody's membership ended; undefined for who is a member, or never was. */
export async function findPastMembership(
  db: Reader,
  organizationId: string,
  userId: string,
): Promise<{ endedAt: string } | undefined> {
  return db
    .selectFrom('memberships')
    .select('updated_at as endedAt')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('lifecycle_state', '=', 'removed')
    .executeTakeFirst();
}

function memberships(db: Reader) {
  return db
    .selectFrom('memberships as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'm.org_id').onRef('n.user_id', '=', 'm.user_id'),
    )
    .where('m.lifecycle_state', '=', 'active')
    .select([
      'm.org_id',
      'm.user_id',
      'u.primary_email',
      'm.role',
      'm.created_at',
      'm.updated_at',
      'n.id as username_id',
      'n.username',
      'n.source',
      'n.lifecycle_state as username_state',
      'n.created_at as username_created_at',
      'n.frozen_at',
    ])
    .orderBy('m.created_at')
    .orderBy('m.user_id');
}

function membershipOf(
  row: Awaited<ReturnType<ReturnType<typeof memberships>['execute']>>[number],
): Membership {
  return {
    organizationId: row.org_id,
    userId: row.user_id,
    email: row.primary_email,
    role: row.role,
    lifecycleState: 'active',
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    username: {
      id: row.username_id,
      username: row.username,
      source: row.source,
      lifecycleState: row.username_state,
      createdAt: row.username_created_at,
      frozenAt: row.frozen_at,
    },
  };
}

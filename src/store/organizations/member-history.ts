/**
 * What members of an organization were and might do, since when and until when: a row for each state, written with the change
 * itself. Grants need none, since their table keeps those that ended.
 */
import type { GrantedPermission, Role } from '../../domain/access/permission.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';

/** A member at a time. Times in RFC 3339. */
export interface MemberAt {
  userId: string;
  /** As they are called now. */
  email: string;
  displayName: string;
  role: Role;
  username: string | undefined;
  memberSince: string;
  /** Without those that had ended. */
  granted: readonly GrantedPermission[];
}

/** Notes what a person is in an organization from now on, where that changed. Every change of a membership ends with it. */
export async function recordMember(
  tx: Tx,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<void> {
  const who = { org_id: organizationId, user_id: userId };
  const member = await findRow(tx.db, 'memberships', { ...who, lifecycle_state: 'active' });
  const name = await findRow(tx.db, 'organization_usernames', who);
  const held = await listRows(tx.db, 'member_permissions', who, 'permission');
  const state = member && {
    role: member.role,
    username: name?.username ?? null,
    member_since: member.created_at,
    permissions: JSON.stringify(held.map(({ permission, expires_at }) => [permission, expires_at])),
  };
  const open = await findRow(tx.db, 'member_history', { ...who, until: null });
  if (open ? isSame(open, state) : !state) return;
  const now = toTime(tx.now);
  // A clock that was set back.
  const since = open && open.since > now ? open.since : now;
  if (open?.since === since) await deleteRows(tx.db, 'member_history', { ...who, since });
  else if (open) await updateRows(tx.db, 'member_history', { ...who, since: open.since }, { until: since });
  if (state) await insertRow(tx.db, 'member_history', { ...who, since, until: null, ...state });
}

type State = { role: Role; username: string | null; permissions: string };

function isSame(one: State, other: State | undefined): boolean {
  return one.role === other?.role && one.username === other.username && one.permissions === other.permissions;
}

/** The counter with the start of the history, in ms since 1970. */
const start = 'member history since';

/** The start of the history, which is complete from then on; RFC 3339. */
export async function findHistoryStart(db: Reader): Promise<string> {
  const row = await findRow(db, 'counters', { name: start });
  return row ? toTime(row.value) : '9999';
}

/** The members of an organization at a time (RFC 3339), which is not before the start. */
export async function listMembersAt(db: Reader, organizationId: string, at: string): Promise<MemberAt[]> {
  const rows = await db
    .selectFrom('member_history as h')
    .innerJoin('users as u', 'u.id', 'h.user_id')
    .select(['h.user_id', 'h.role', 'h.username', 'h.member_since', 'h.permissions'])
    .select(['u.primary_email as email', 'u.display_name as displayName'])
    .where('h.org_id', '=', organizationId)
    .where('h.since', '<=', at)
    .where((eb) => eb.or([eb('h.until', 'is', null), eb('h.until', '>', at)]))
    .orderBy('h.user_id')
    .execute();
  return rows.map(({ user_id: userId, email, displayName, role, username, ...row }) => {
    const all = JSON.parse(row.permissions) as [key: string, expiresAt: string | null][];
    const live = all.filter(([, expiresAt]) => expiresAt === null || expiresAt > at);
    const granted = live.map(([key, expiresAt]) => ({ key, expiresAt }));
    const facts = { userId, email, displayName, role, memberSince: row.member_since, granted };
    return { ...facts, username: username ?? undefined };
  });
}

/** Forgets what was over before a time (RFC 3339); the history starts there from now on. */
export async function deleteOldHistory(tx: Tx, before: string): Promise<void> {
  if ((await findHistoryStart(tx.db)) >= before) return;
  await tx.db.deleteFrom('member_history').where('until', '<=', before).execute();
  await updateRows(tx.db, 'counters', { name: start }, { value: fromTime(before) });
}

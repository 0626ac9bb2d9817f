/** When permissions of members end by themselves. */
import type { GrantedPermission } from '../domain/permission-end.ts';
import type { Reader } from './index.ts';
import { prepared } from './prepared.ts';
import { fromTime, toTime } from './time.ts';

/** Whose permissions end after one time and not after another, both in ms since 1970. */
export async function listEndedBetween(db: Reader, from: number, to: number): Promise<string[]> {
  if (from >= to) return [];
  return (await endedBetween(db, toTime(from), toTime(to))).map((row) => row.user_id);
}

/** When the next permission ends, in ms since 1970; undefined where none will. */
export async function findNextEnd(db: Reader, now: number): Promise<number | undefined> {
  const [row] = await nextEnd(db, toTime(now));
  return row?.expires_at == null ? undefined : fromTime(row.expires_at);
}

/** What a member was granted and lost at its end, after one time and not after another, both in ms since 1970. */
export async function listEndedOf(
  db: Reader,
  { organizationId, userId }: { organizationId: string; userId: string },
  from: number,
  to: number,
): Promise<GrantedPermission[]> {
  const rows = await endedOf(db, organizationId, userId, toTime(from), toTime(to));
  return rows.map((row) => ({ key: row.permission, expiresAt: row.expires_at }));
}

const endedOf = prepared((db, organizationId: string, userId: string, from: string, to: string) =>
  db
    .selectFrom('member_permissions')
    .select(['permission', 'expires_at'])
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('expires_at', '>', from)
    .where('expires_at', '<=', to)
    .orderBy('permission'),
);

const endedBetween = prepared((db, from: string, to: string) =>
  db
    .selectFrom('member_permissions')
    .select('user_id')
    .distinct()
    .where('expires_at', '>', from)
    .where('expires_at', '<=', to),
);

const nextEnd = prepared((db, at: string) =>
  db
    .selectFrom('member_permissions')
    .select('expires_at')
    .where('expires_at', '>', at)
    .orderBy('expires_at')
    .limit(1),
);

/** Step 34 of the schema. A released step is never edited. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

interface Before {
  memberships: { org_id: string; user_id: string; role: string; lifecycle_state: string; created_at: string };
  member_permissions: { org_id: string; user_id: string; permission: string; expires_at: string | null };
  organization_usernames: { org_id: string; user_id: string; username: string };
  counters: { name: string; value: number };
  member_history: {
    org_id: string;
    user_id: string;
    since: string;
    until: string | null;
    role: string;
    username: string | null;
    member_since: string;
    permissions: string;
  };
}

/** What members were, and when. It begins with what they are at the upgrade; a counter says when that was. */
export const memberHistory: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table member_history (
      org_id text not null,
      user_id text not null,
      since text not null,
      until text,
      role text not null,
      username text,
      member_since text not null,
      permissions text not null,
      primary key (org_id, user_id, since)
    )`.execute(db);
    await fill(db as Kysely<Before>);
  },
};

async function fill(db: Kysely<Before>): Promise<void> {
  const now = Date.now();
  const since = new Date(now).toISOString();
  await db.insertInto('counters').values({ name: 'member history since', value: now }).execute();
  const members = await db
    .selectFrom('memberships as m')
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'm.org_id').onRef('n.user_id', '=', 'm.user_id'),
    )
    .select(['m.org_id', 'm.user_id', 'm.role', 'm.created_at', 'n.username'])
    .where('m.lifecycle_state', '=', 'active')
    .execute();
  const held = await db
    .selectFrom('member_permissions')
    .select(['org_id', 'user_id', 'permission', 'expires_at'])
    .orderBy('permission')
    .execute();
  const heldBy = Map.groupBy(held, (row) => `${row.org_id} ${row.user_id}`);
  for (const { created_at: memberSince, ...member } of members) {
    const own = heldBy.get(`${member.org_id} ${member.user_id}`) ?? [];
    const permissions = JSON.stringify(own.map(({ permission, expires_at }) => [permission, expires_at]));
    const row = { ...member, since, until: null, member_since: memberSince, permissions };
    await db.insertInto('member_history').values(row).execute();
  }
}

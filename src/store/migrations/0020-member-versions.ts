import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * A number for each organization that rises with whatever is in the lists of its members, so that a list of thousands is
 * made anew only then. Triggers keep it, since whoever forgot to raise it would have old lists shown.
 */
export const memberVersions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  `create table member_versions (
    org_id text primary key not null references organizations (id),
    version integer not null
  )`,
  ...['memberships', 'organization_usernames', 'member_permissions'].flatMap((table) => [
    trigger(table, 'insert', 'new.org_id'),
    trigger(table, 'update', 'new.org_id'),
    trigger(table, 'delete', 'old.org_id'),
  ]),
  `create trigger users_raise_member_versions after update of primary_email on users
    when old.primary_email is not new.primary_email
    begin
      update member_versions set version = version + 1
        where org_id in (select org_id from memberships where user_id = new.id);
    end`,
];

function trigger(table: string, event: string, organization: string): string {
  return `create trigger ${table}_raise_member_versions_on_${event} after ${event} on ${table}
    begin
      insert into member_versions (org_id, version) values (${organization}, 1)
        on conflict (org_id) do update set version = version + 1;
    end`;
}

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** `insert or replace` drops a row without asking the triggers against that; so entries may only be added at the end. */
export const auditGrows: Migration = {
  async up(db: Kysely<unknown>) {
    await sql
      .raw(`create trigger audit_entries_grow before insert on audit_entries
        when new.seq <= (select coalesce(max(seq), 0) from audit_entries)
        begin select raise(abort, 'the audit trail is append-only'); end`)
      .execute(db);
  },
};

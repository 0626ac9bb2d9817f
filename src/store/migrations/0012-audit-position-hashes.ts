import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The hash of the last entry that a destination has, so that another one of its number is known. Unknown so far: ''. */
export const auditPositionHashes: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw("alter table audit_positions add column entry_hash text not null default ''").execute(db);
  },
};

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Sessions that have no closing entry in the audit trail yet; `entry` is the opening one, as JSON. */
export const openSessions: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('open_sessions')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('entry', 'text', (column) => column.notNull())
      .execute();
  },
};

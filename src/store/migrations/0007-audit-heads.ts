import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Signed heads of the audit trail, and how much of the trail each destination has been sent. */
export const auditHeads: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('audit_heads')
      .addColumn('seq', 'integer', (column) => column.primaryKey())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('at', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('signature', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('audit_positions')
      .addColumn('destination', 'text', (column) => column.primaryKey())
      .addColumn('entry_seq', 'integer', (column) => column.notNull())
      .addColumn('head_seq', 'integer', (column) => column.notNull())
      .execute();
  },
};

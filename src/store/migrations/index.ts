/** The schema's migrations, in order. Forward only; a released one is never edited. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { baseline } from './baseline.ts';
import { clusterBaseline } from './baseline-clusters.ts';
import { serviceBaseline } from './baseline-service.ts';

/** The schema of 0.3.0, which every database begins with. A database of an earlier version is refused. */
export const firstMigration = '0001-0.3.0';

/**
 * Its statements. A comment before a table or a column is its documentation in Kysely's types, one after a column the
 * texts or numbers that it holds. Columns are text and integer only, for SQLite and PostgreSQL alike; times are RFC
 * 3339 text in UTC with milliseconds, which sorts as it reads; IDs are made in code.
 */
export const firstSchema = baseline + clusterBaseline + serviceBaseline;

export const migrations: Record<string, Migration> = {
  [firstMigration]: {
    async up(db: Kysely<unknown>) {
      for (const statement of statementsOf(firstSchema)) await sql.raw(statement).execute(db);
      // The history of members begins now: there were none before.
      await sql`insert into counters values ('member history since', ${Date.now()})`.execute(db);
    },
  },
};

/** Splits a schema into statements, each of which ends with a semicolon at the end of a line; drops comments. */
function statementsOf(text: string): string[] {
  const plain = text.replaceAll(/^ *--.*\n| *--.*$/gm, '');
  return plain.split(/;\n/).filter((statement) => statement.trim() !== '');
}

/**
 * The last migration of the oldest program that works with this schema. In a rolling upgrade, servers of the previous
 * version run alongside those of this one, so each migration only adds: tables, columns that may be null or have a
 * default, indexes. What only an older program needs is removed one version later, and this is then raised to the last
 * migration of the version between.
 */
export const oldestServed = '0001-0.3.0';

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Which of people's Kubernetes permissions are in force on a cluster, by ID, as JSON; null until a pass has told. */
export const boundPermissions: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw('alter table cluster_sides add column bound text').execute(db);
  },
};

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const statements = [
  `create table scheduler_configurations (
    cluster_id text primary key references clusters (id),
    configuration text not null,
    updated_by_user_id text not null references users (id),
    updated_at text not null
  )`,
  `create table default_scheduler_configurations (
    organization_id text primary key references organizations (id),
    configuration text not null,
    updated_by_user_id text not null references users (id),
    updated_at text not null
  )`,
];

/** Slurm configurations of clusters, and those that an organization's new clusters start with. */
export const slurmConfigurations: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const statements = [
  `create table slurm_configuration_versions (
    cluster_id text not null references clusters (id),
    generation integer not null,
    desired_generation integer not null,
    configuration text not null,
    bytes integer not null,
    changes text not null,
    user_id text not null references users (id),
    audit_seq integer,
    created_at text not null,
    primary key (cluster_id, generation)
  )`,
  // What stands is the first that is known of; who set it is, why is not.
  `insert into slurm_configuration_versions
    select s.cluster_id, c.scheduler_generation, c.desired_generation, s.configuration, length(s.configuration), '[]',
      s.updated_by_user_id, null, s.updated_at
    from scheduler_configurations s join clusters c on c.id = s.cluster_id`,
];

/** The Slurm configurations that clusters were given, with who gave them. */
export const slurmConfigurationVersions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

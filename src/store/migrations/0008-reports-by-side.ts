import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const tables = [
  'alter table observations rename to observations_by_cluster',
  `create table observations (
    cluster_id text not null references clusters (id),
    side text not null,
    observed_at text not null,
    manifest_generation integer not null,
    desired_generation integer not null,
    list_version integer not null,
    failure text,
    report text not null,
    primary key (cluster_id, side)
  )`,
  `create table cluster_sides (
    cluster_id text not null references clusters (id),
    side text not null,
    look_failure text,
    look_failed_since text,
    apply_failure text,
    cleanup text,
    primary key (cluster_id, side)
  )`,
];

interface OldRow {
  cluster_id: string;
  scheduler: string | null;
  driver: string;
  observed_at: string;
  manifest_generation: number;
  desired_generation: number;
  list_version: number;
  failure: string | null;
  report: string;
}

/**
 * A report for each side of a cluster. The one on record becomes the report of the side that it is of; where a cluster
 * has both, each side keeps its part, so that logins and kubeconfigs go on working until the next look.
 */
export const reportsBySide: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of tables) await sql.raw(statement).execute(db);
    const { rows } = await sql<OldRow>`
      select o.*, c.scheduler, c.driver
      from observations_by_cluster o join clusters c on c.id = o.cluster_id`.execute(db);
    for (const row of rows) {
      const settings = JSON.parse(row.driver) as { slurm?: object; kubernetes?: object };
      const isBoth = settings.slurm !== undefined && settings.kubernetes !== undefined;
      const hasSlurm = settings.slurm !== undefined || (!settings.kubernetes && row.scheduler === 'sunk');
      if (hasSlurm) await insert(db, row, 'slurm', isBoth);
      if (isBoth || !hasSlurm) await insert(db, row, 'kubernetes', isBoth);
    }
    await sql.raw('drop table observations_by_cluster').execute(db);
  },
};

async function insert(db: Kysely<unknown>, row: OldRow, side: string, isBoth: boolean): Promise<void> {
  const { kubernetesFailure = null, ...report } = JSON.parse(row.report) as Record<string, unknown>;
  const isSlurm = side === 'slurm';
  const failure = isSlurm ? row.failure : kubernetesFailure;
  if (isBoth) {
    // Which side said what of these is not known; the next look tells.
    delete report['machines'];
    delete report['partialMachines'];
    if (isSlurm) delete report['kubernetes'];
    else delete report['scheduler'];
  }
  const text = JSON.stringify({ ...report, failure });
  await sql`
    insert into observations values (${row.cluster_id}, ${side}, ${row.observed_at},
      ${isSlurm ? row.manifest_generation : 0}, ${row.desired_generation}, ${isSlurm ? row.list_version : 0},
      ${failure}, ${text})`.execute(db);
}

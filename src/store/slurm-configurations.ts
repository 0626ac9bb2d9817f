/** Slurm configurations: each cluster's, and the one that an organization's new clusters start with. */
import {
  changedFields,
  configurationChanges,
  type SlurmConfiguration,
} from '../domain/slurm-configuration.ts';
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { keepSlurmVersion } from './slurm-versions.ts';
import { toTime } from './time.ts';

/** A cluster's configuration; empty while it was never written. */
export async function findSlurmConfiguration(db: Reader, clusterId: string): Promise<SlurmConfiguration> {
  const row = await db
    .selectFrom('scheduler_configurations')
    .select('configuration')
    .where('cluster_id', '=', clusterId)
    .executeTakeFirst();
  return parse(row);
}

/** A cluster's configuration with its generation, as a manifest carries them. */
export async function findSchedulerState(
  db: Reader,
  clusterId: string,
): Promise<{ schedulerGeneration: number; slurmConfiguration: SlurmConfiguration }> {
  const [row] = await stateOf(db, clusterId);
  const configuration = row?.configuration ?? '{}';
  return {
    schedulerGeneration: row?.scheduler_generation ?? 0,
    slurmConfiguration: parse({ configuration }),
  };
}

const stateOf = prepared((db, clusterId: string) =>
  db
    .selectFrom('clusters as c')
    .leftJoin('scheduler_configurations as s', 's.cluster_id', 'c.id')
    .select(['c.scheduler_generation', 's.configuration'])
    .where('c.id', '=', clusterId),
);

/** What an organization's new clusters start with; empty when it has no default. */
export async function findDefaultSlurmConfiguration(
  db: Reader,
  organizationId: string,
): Promise<SlurmConfiguration> {
  const row = await db
    .selectFrom('default_scheduler_configurations')
    .select('configuration')
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return parse(row);
}

/** A configuration in place of the one that stands. */
export interface Replacement {
  configuration: SlurmConfiguration;
  userId: string;
}

/**
 * Replaces a cluster's configuration, raises its generations and keeps it in the history; one that means the same changes
 * nothing. Returns the fields that changed. The next entry of the audit trail is to be the one of this change.
 */
export async function updateSlurmConfiguration(
  tx: Tx,
  { clusterId, configuration, userId }: Replacement & { clusterId: string },
): Promise<string[]> {
  const before = await findSlurmConfiguration(tx.db, clusterId);
  const changed = changedFields(before, configuration);
  if (changed.length === 0) return [];
  const at = toTime(tx.now);
  const row = {
    cluster_id: clusterId,
    configuration: JSON.stringify(configuration),
    updated_by_user_id: userId,
    updated_at: at,
  };
  await tx.db
    .insertInto('scheduler_configurations')
    .values(row)
    .onConflict((conflict) => conflict.column('cluster_id').doUpdateSet(row))
    .execute();
  await tx.db
    .updateTable('clusters')
    .set((eb) => ({
      scheduler_generation: eb('scheduler_generation', '+', 1),
      desired_generation: eb('desired_generation', '+', 1),
      version: eb('version', '+', 1),
      updated_at: at,
    }))
    .where('id', '=', clusterId)
    .execute();
  const changes = configurationChanges(before, configuration);
  await keepSlurmVersion(tx, { clusterId, userId, changes, hasEntry: true });
  tx.changed({ clusterId });
  return changed;
}

/** Replaces what an organization's new clusters start with; those that are there keep theirs. As above. */
export async function updateDefaultSlurmConfiguration(
  tx: Tx,
  { organizationId, configuration, userId }: Replacement & { organizationId: string },
): Promise<string[]> {
  const changed = changedFields(await findDefaultSlurmConfiguration(tx.db, organizationId), configuration);
  if (changed.length === 0) return [];
  const row = {
    organization_id: organizationId,
    configuration: JSON.stringify(configuration),
    updated_by_user_id: userId,
    updated_at: toTime(tx.now),
  };
  await tx.db
    .insertInto('default_scheduler_configurations')
    .values(row)
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(row))
    .execute();
  return changed;
}

/** Gives a new cluster its organization's default, where there is one. */
export async function copyDefaultSlurmConfiguration(
  tx: Tx,
  { clusterId, organizationId }: { clusterId: string; organizationId: string },
): Promise<void> {
  const standard = await tx.db
    .selectFrom('default_scheduler_configurations')
    .select(['configuration', 'updated_by_user_id'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  if (!standard || standard.configuration === '{}') return;
  await tx.db
    .insertInto('scheduler_configurations')
    .values({ cluster_id: clusterId, ...standard, updated_at: toTime(tx.now) })
    .execute();
  await tx.db.updateTable('clusters').set({ scheduler_generation: 1 }).where('id', '=', clusterId).execute();
  const changes = configurationChanges({}, parse(standard));
  await keepSlurmVersion(tx, {
    clusterId,
    userId: standard.updated_by_user_id,
    changes,
    hasEntry: false,
  });
}

function parse(row: { configuration: string } | undefined): SlurmConfiguration {
  return row ? (JSON.parse(row.configuration) as SlurmConfiguration) : {};
}

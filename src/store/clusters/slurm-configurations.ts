/** Slurm configurations: each cluster's, with the versions it was given before, and the one that an
 * organization's new clusters start with. */
import type { Manifest } from '../../domain/access/manifest.ts';
import {
  type ConfigurationChange,
  type ConfigurationChanges,
  changedFields,
  configurationChanges,
  type SlurmConfiguration,
} from '../../domain/slurm/configuration.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, insertRow, saveRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { updateCluster } from './cluster-row.ts';

/** Limits of a cluster's history; the newest version stays, however large. */
const mostVersions = 100;
const mostBytes = 16 * 2 ** 20;

/** A configuration that a cluster was given, without its text. */
interface SlurmVersion {
  generation: number;
  createdAt: string;
  userId: string;
  email: string;
  /** Null where the audit trail has no entry of it. */
  reason: string | null;
  /** The first changes; `changeCount` is the number of all. */
  changes: ConfigurationChange[];
  changeCount: number;
  bytes: number;
}

/**
 * Stores a cluster's new configuration as a version, and deletes the oldest. `auditSeq`: the audit trail's entry of
 * this change; null: it has none.
 */
async function keepSlurmVersion(
  tx: Tx,
  {
    clusterId,
    userId,
    changes,
    auditSeq,
  }: { clusterId: string; userId: string; changes: ConfigurationChanges; auditSeq: number | null },
): Promise<void> {
  const current = await tx.db
    .selectFrom('clusters as c')
    .innerJoin('scheduler_configurations as s', 's.cluster_id', 'c.id')
    .select(['c.scheduler_generation', 'c.desired_generation', 's.configuration'])
    .where('c.id', '=', clusterId)
    .executeTakeFirstOrThrow();
  await insertRow(tx.db, 'slurm_configuration_versions', {
    cluster_id: clusterId,
    generation: current.scheduler_generation,
    desired_generation: current.desired_generation,
    configuration: current.configuration,
    bytes: Buffer.byteLength(current.configuration),
    changes: JSON.stringify(changes),
    user_id: userId,
    audit_seq: auditSeq,
    created_at: toTime(tx.now),
  });
  await forgetOld(tx, clusterId);
}

async function forgetOld(tx: Tx, clusterId: string): Promise<void> {
  const rows = await tx.db
    .selectFrom('slurm_configuration_versions')
    .select(['generation', 'bytes'])
    .where('cluster_id', '=', clusterId)
    .orderBy('generation', 'desc')
    .execute();
  let bytes = 0;
  const first = rows.findIndex((row, index) => {
    bytes += row.bytes;
    return index > 0 && (index >= mostVersions || bytes > mostBytes);
  });
  const oldest = rows[first];
  if (!oldest) return;
  await tx.db
    .deleteFrom('slurm_configuration_versions')
    .where('cluster_id', '=', clusterId)
    .where('generation', '<=', oldest.generation)
    .execute();
}

export async function listSlurmVersions(db: Reader, clusterId: string): Promise<SlurmVersion[]> {
  const rows = await db
    .selectFrom('slurm_configuration_versions as v')
    .innerJoin('users as u', 'u.id', 'v.user_id')
    .leftJoin('audit_entries as e', 'e.seq', 'v.audit_seq')
    .select([
      'v.generation',
      'v.created_at as createdAt',
      'v.user_id as userId',
      'u.primary_email as email',
      'e.reason',
      'v.changes',
      'v.bytes',
    ])
    .where('v.cluster_id', '=', clusterId)
    .orderBy('v.generation', 'desc')
    .execute();
  return rows.map((row) => {
    const { changes, count } = JSON.parse(row.changes) as ConfigurationChanges;
    return { ...row, changes, changeCount: count };
  });
}

export async function findSlurmVersion(
  db: Reader,
  clusterId: string,
  generation: number,
): Promise<SlurmConfiguration | undefined> {
  const row = await findRow(db, 'slurm_configuration_versions', { cluster_id: clusterId, generation });
  return row && (JSON.parse(row.configuration) as SlurmConfiguration);
}

/** The newest version, with the cluster's configuration version that first wanted it; undefined while there is none. */
export async function findNewestSlurmVersion(
  db: Reader,
  clusterId: string,
): Promise<{ generation: number; desiredGeneration: number; savedAt: string } | undefined> {
  return newestFirst(db, clusterId).limit(1).executeTakeFirst();
}

/** The Slurm version that a configuration version of a cluster has; 0: none of those that are kept. */
export async function findSlurmVersionAt(
  db: Reader,
  clusterId: string,
  desiredGeneration: number,
): Promise<number> {
  const until = newestFirst(db, clusterId).where('desired_generation', '<=', desiredGeneration);
  const row = await until.limit(1).executeTakeFirst();
  return row?.generation ?? 0;
}

function newestFirst(db: Reader, clusterId: string) {
  return db
    .selectFrom('slurm_configuration_versions')
    .select(['generation', 'desired_generation as desiredGeneration', 'created_at as savedAt'])
    .where('cluster_id', '=', clusterId)
    .orderBy('generation', 'desc');
}

/** A cluster's configuration with its generation, as a manifest carries them. */
export async function findSchedulerState(
  db: Reader,
  clusterId: string,
): Promise<Pick<Manifest, 'schedulerGeneration' | 'slurmConfiguration' | 'configurationPutAt'>> {
  const [row] = await stateOf(db, clusterId);
  const configuration = row?.configuration ?? '{}';
  return {
    schedulerGeneration: row?.scheduler_generation ?? 0,
    slurmConfiguration: parse({ configuration }),
    ...(row?.updated_at && { configurationPutAt: row.updated_at }),
  };
}

const stateOf = prepared((db, clusterId: string) =>
  db
    .selectFrom('clusters as c')
    .leftJoin('scheduler_configurations as s', 's.cluster_id', 'c.id')
    .select(['c.scheduler_generation', 's.configuration', 's.updated_at'])
    .where('c.id', '=', clusterId),
);

/** The configuration that an organization's new clusters start with; empty when it has no default. */
export async function findDefaultSlurmConfiguration(
  db: Reader,
  organizationId: string,
): Promise<SlurmConfiguration> {
  const row = await findRow(db, 'default_scheduler_configurations', { organization_id: organizationId });
  return parse(row);
}

/** A configuration that replaces the current one. */
export interface Replacement {
  configuration: SlurmConfiguration;
  userId: string;
}

/**
 * Replaces a cluster's configuration, raises its generations and adds it to the history. An equivalent one changes
 * none of these, but is tried again where the cluster refused it. Returns the fields that changed. `auditSeq`: the
 * number that the audit trail's entry of this change will have.
 */
export async function updateSlurmConfiguration(
  tx: Tx,
  { clusterId, configuration, userId, auditSeq }: Replacement & { clusterId: string; auditSeq: number },
): Promise<string[]> {
  const before = parse(await findRow(tx.db, 'scheduler_configurations', { cluster_id: clusterId }));
  const changed = changedFields(before, configuration);
  const at = toTime(tx.now);
  if (changed.length === 0) {
    await updateRows(tx.db, 'scheduler_configurations', { cluster_id: clusterId }, { updated_at: at });
    tx.changed({ kind: 'cluster', clusterId });
    return [];
  }
  const row = {
    cluster_id: clusterId,
    configuration: JSON.stringify(configuration),
    updated_by_user_id: userId,
    updated_at: at,
  };
  await saveRow(tx.db, 'scheduler_configurations', ['cluster_id'], row);
  await updateCluster(tx, clusterId, {}, { raised: ['scheduler_generation', 'desired_generation'] });
  const changes = configurationChanges(before, configuration);
  await keepSlurmVersion(tx, { clusterId, userId, changes, auditSeq });
  tx.changed({ kind: 'cluster', clusterId });
  return changed;
}

/** Replaces the default of an organization's new clusters, not of existing ones; returns the fields that changed. */
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
  await saveRow(tx.db, 'default_scheduler_configurations', ['organization_id'], row);
  return changed;
}

/** Gives a new cluster its organization's default, where there is one. */
export async function copyDefaultSlurmConfiguration(
  tx: Tx,
  { clusterId, organizationId }: { clusterId: string; organizationId: string },
): Promise<void> {
  const standard = await findRow(tx.db, 'default_scheduler_configurations', {
    organization_id: organizationId,
  });
  if (!standard || standard.configuration === '{}') return;
  await insertRow(tx.db, 'scheduler_configurations', {
    cluster_id: clusterId,
    configuration: standard.configuration,
    updated_by_user_id: standard.updated_by_user_id,
    updated_at: toTime(tx.now),
  });
  await updateRows(tx.db, 'clusters', { id: clusterId }, { scheduler_generation: 1 });
  const changes = configurationChanges({}, parse(standard));
  await keepSlurmVersion(tx, {
    clusterId,
    userId: standard.updated_by_user_id,
    changes,
    auditSeq: null,
  });
}

/** Empty where none was ever written. */
function parse(row: { configuration: string } | undefined): SlurmConfiguration {
  return row ? (JSON.parse(row.configuration) as SlurmConfiguration) : {};
}

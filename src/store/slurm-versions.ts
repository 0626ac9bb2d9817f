/** The Slurm configurations that clusters were given, up to a bound each. The reasons are in the audit trail. */
import type {
  ConfigurationChange,
  ConfigurationChanges,
  SlurmConfiguration,
} from '../domain/slurm-configuration.ts';
import { findLastSeq } from './audit.ts';
import type { Reader, Tx } from './index.ts';
import { toTime } from './time.ts';

/** The newest stays, however large. */
const mostVersions = 100;
const mostBytes = 16 * 2 ** 20;

/** A configuration that a cluster was given, without its text. */
export interface SlurmVersion {
  generation: number;
  /** RFC 3339. */
  createdAt: string;
  userId: string;
  email: string;
  /** Null where the audit trail has none of it. */
  reason: string | null;
  /** The first of them, and how many there are in all. */
  changes: ConfigurationChange[];
  changeCount: number;
  bytes: number;
}

/**
 * Keeps what a cluster has from now on as a version of its own, and forgets the oldest. With `hasEntry`, the next entry of the
 * audit trail is the one of this change.
 */
export async function keepSlurmVersion(
  tx: Tx,
  {
    clusterId,
    userId,
    changes,
    hasEntry,
  }: { clusterId: string; userId: string; changes: ConfigurationChanges; hasEntry: boolean },
): Promise<void> {
  const current = await tx.db
    .selectFrom('clusters as c')
    .innerJoin('scheduler_configurations as s', 's.cluster_id', 'c.id')
    .select(['c.scheduler_generation', 'c.desired_generation', 's.configuration'])
    .where('c.id', '=', clusterId)
    .executeTakeFirstOrThrow();
  await tx.db
    .insertInto('slurm_configuration_versions')
    .values({
      cluster_id: clusterId,
      generation: current.scheduler_generation,
      desired_generation: current.desired_generation,
      configuration: current.configuration,
      bytes: Buffer.byteLength(current.configuration),
      changes: JSON.stringify(changes),
      user_id: userId,
      audit_seq: hasEntry ? (await findLastSeq(tx.db)) + 1 : null,
      created_at: toTime(tx.now),
    })
    .execute();
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

/** Newest first. */
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
  return rows.map((row) => ({ ...row, ...parseChanges(row.changes) }));
}

/** Those of earlier releases were kept without their count. */
function parseChanges(text: string): { changes: ConfigurationChange[]; changeCount: number } {
  const kept = JSON.parse(text) as ConfigurationChange[] | ConfigurationChanges;
  if (Array.isArray(kept)) return { changes: kept, changeCount: kept.length };
  return { changes: kept.changes, changeCount: kept.count };
}

/** One version; undefined where it is not kept. */
export async function findSlurmVersion(
  db: Reader,
  clusterId: string,
  generation: number,
): Promise<SlurmConfiguration | undefined> {
  const row = await db
    .selectFrom('slurm_configuration_versions')
    .select('configuration')
    .where('cluster_id', '=', clusterId)
    .where('generation', '=', generation)
    .executeTakeFirst();
  return row && (JSON.parse(row.configuration) as SlurmConfiguration);
}

/** When the newest was set, and since which configuration version of the cluster it is wanted; undefined while there is none. */
export async function findNewestSlurmVersion(
  db: Reader,
  clusterId: string,
): Promise<{ generation: number; desiredGeneration: number; savedAt: string } | undefined> {
  return db
    .selectFrom('slurm_configuration_versions')
    .select(['generation', 'desired_generation as desiredGeneration', 'created_at as savedAt'])
    .where('cluster_id', '=', clusterId)
    .orderBy('generation', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The newest that a cluster has whose configuration version is this one; 0: none of those that are kept. */
export async function findSlurmVersionAt(
  db: Reader,
  clusterId: string,
  desiredGeneration: number,
): Promise<number> {
  const row = await db
    .selectFrom('slurm_configuration_versions')
    .select('generation')
    .where('cluster_id', '=', clusterId)
    .where('desired_generation', '<=', desiredGeneration)
    .orderBy('generation', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.generation ?? 0;
}

/** GPU time by cluster and day: that of Slurm's accounting as last read, else the sum of observed jobs. */
import type { GpuDay, RunningJob } from '../../domain/access/manifest.ts';
import { dayOf, heldBetween, lastDays, mostGpuDays } from '../../domain/clusters/gpu-hours.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findRow, saveRow } from '../engine/rows.ts';

export interface KnownGpuDay extends GpuDay {
  /** `slurmdbd`: Slurm's accounting; `observed`: running jobs, from report to report. */
  source: 'slurmdbd' | 'observed';
}

export async function listGpuDays(db: Reader, clusterId: string, since: string): Promise<KnownGpuDay[]> {
  const rows = await db
    .selectFrom('gpu_days')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('day', '>=', since)
    .orderBy('day')
    .execute();
  return rows.map(({ day, source, seconds }) => {
    return { day, source, seconds: JSON.parse(seconds) as GpuDay['seconds'] };
  });
}

export async function saveGpuDays(tx: Tx, clusterId: string, days: readonly GpuDay[]): Promise<void> {
  for (const day of days) await saveGpuDay(tx, clusterId, { ...day, source: 'slurmdbd' });
}

/** A longer gap between reports is not counted: the jobs that ran meanwhile are not known. */
const longestGapMs = 300_000;

/** Adds the GPU time of running jobs since the previous report, made at `since` (ms since 1970). */
export async function addObservedGpuTime(
  tx: Tx,
  clusterId: string,
  { jobs, since }: { jobs: readonly RunningJob[]; since: number },
): Promise<void> {
  if (tx.now - since > longestGapMs) return;
  for (const { day, seconds } of heldBetween(jobs, since, tx.now)) {
    if (Object.keys(seconds).length === 0) continue;
    const row = await findRow(tx.db, 'gpu_days', { cluster_id: clusterId, day });
    const sum = new Map(Object.entries(JSON.parse(row?.seconds ?? '{}') as GpuDay['seconds']));
    for (const [user, more] of Object.entries(seconds)) sum.set(user, (sum.get(user) ?? 0) + more);
    await saveGpuDay(tx, clusterId, { day, source: 'observed', seconds: Object.fromEntries(sum) });
  }
}

async function saveGpuDay(tx: Tx, clusterId: string, { day, source, seconds }: KnownGpuDay): Promise<void> {
  const row = { cluster_id: clusterId, day, source, seconds: JSON.stringify(seconds) };
  await saveRow(tx.db, 'gpu_days', ['cluster_id', 'day'], row);
  const oldest = lastDays(tx.now, mostGpuDays).at(-1) ?? dayOf(tx.now);
  await tx.db.deleteFrom('gpu_days').where('cluster_id', '=', clusterId).where('day', '<', oldest).execute();
}

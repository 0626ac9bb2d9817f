/** How far the clusters of a service are, read from its database beside it. */
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';

export interface SyncProgress extends Disposable {
  /** The lowest generation of any cluster's access list. */
  listed(): number;
  /** The lowest generation that any cluster reports to have applied; 0 where one has reported nothing. */
  applied(): number;
}

export function openSyncProgress(databaseFile: string): SyncProgress {
  const database = new Database(databaseFile, { readonly: true });
  // Of all clusters, for one without a list yet would be left out of the lists.
  const lowest = database.prepare(
    `select min(coalesce(l.generation, 0)) as listed, min(coalesce(o.manifest_generation, 0)) as applied
     from clusters as c
     left join access_lists as l on l.cluster_id = c.id
     left join observations as o on o.cluster_id = c.id and o.side = 'slurm'`,
  );
  const read = () => lowest.get() as { listed: number; applied: number };
  return {
    listed: () => read().listed,
    applied: () => read().applied,
    [Symbol.dispose]: () => void database.close(),
  };
}

/** Resolves to how long it took until `isSo`; rejects after `limitMs`. */
export async function until(isSo: () => boolean, limitMs: number, what: string): Promise<number> {
  const began = performance.now();
  while (!isSo()) {
    if (performance.now() - began > limitMs) throw new Error(`${what} within ${limitMs / 1000} s`);
    await sleep(2);
  }
  return performance.now() - began;
}

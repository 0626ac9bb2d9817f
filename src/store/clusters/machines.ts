/**
 * The machines of clusters. A machine is known by its name on its cluster, keeps the ID it was given when it was first
 * reported, and is retired while the cluster reports without it.
 */
import type { MachineReport } from '../../domain/access/manifest.ts';
import type { Machine } from '../../domain/clusters/cluster.ts';
import { newUuid } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, inCamelCase, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { updateCluster } from './cluster-row.ts';

/** The machines of a cluster by ID, retired ones left out; a page of them behind `after` where asked for. */
export async function listMachines(
  db: Reader,
  clusterId: string,
  page: { limit?: number; after?: string | undefined } = {},
): Promise<Machine[]> {
  let query = db.selectFrom('machines').selectAll();
  query = query.where('cluster_id', '=', clusterId).where('retired_at', 'is', null);
  if (page.after !== undefined) query = query.where('id', '>', page.after);
  if (page.limit !== undefined) query = query.limit(page.limit);
  return (await query.orderBy('id').execute()).map(machineOf);
}

export async function findMachine(db: Reader, machineId: string): Promise<Machine | undefined> {
  const row = await findRow(db, 'machines', { id: machineId, retired_at: null });
  return row && machineOf(row);
}

export async function updateMachineState(
  tx: Tx,
  machineId: string,
  state: Exclude<Machine['lifecycleState'], 'registered'>,
): Promise<void> {
  await updateRows(
    tx.db,
    'machines',
    { id: machineId },
    { lifecycle_state: state, updated_at: toTime(tx.now) },
  );
}

/**
 * Stores a side's report of all its machines: new ones are registered, returning ones keep their ID, and missing ones
 * are retired, except for `others`, which another side has; where these are not known, none is retired. A report
 * without news writes one statement for all machines.
 */
export async function recordMachines(
  tx: Tx,
  clusterId: string,
  reports: readonly MachineReport[],
  others: readonly string[] | 'unknown' = [],
): Promise<void> {
  const at = toTime(tx.now);
  const known = await listRows(tx.db, 'machines', { cluster_id: clusterId });
  const reported = new Map(reports.map((report) => [report.name, JSON.stringify(report)]));
  const names = [...reported.keys()];
  const isKnown = others !== 'unknown';
  if (isKnown) await updateNodeCount(tx, clusterId, reported.size + others.length);
  for (const { id, name, report, retired_at } of known) {
    const latest = reported.get(name);
    reported.delete(name);
    const isRetired = retired_at !== null;
    if (latest === undefined && (!isKnown || others.includes(name))) continue;
    if (latest === undefined ? isRetired : latest === report && !isRetired) continue;
    const change = latest === undefined ? { retired_at: at } : { retired_at: null, report: latest };
    await updateRows(tx.db, 'machines', { id }, { ...change, updated_at: at });
  }
  const isAll = isKnown && others.length === 0;
  if (isAll) await updateSeen(tx.db, clusterId, at);
  else await seen(tx.db, clusterId, at).where('name', 'in', names).execute();
  for (const [name, report] of reported) {
    await insertRow(tx.db, 'machines', {
      id: newUuid(),
      cluster_id: clusterId,
      name,
      lifecycle_state: 'registered',
      report,
      report_generation: 1,
      observed_at: at,
      created_at: at,
      updated_at: at,
    });
  }
}

function seen(db: Reader, clusterId: string, at: string) {
  return db
    .updateTable('machines')
    .set((eb) => ({ observed_at: at, report_generation: eb('report_generation', '+', 1) }))
    .where('cluster_id', '=', clusterId)
    .where('retired_at', 'is', null);
}

const updateSeen = prepared(seen);

async function updateNodeCount(tx: Tx, clusterId: string, nodes: number): Promise<void> {
  const cluster = await findRow(tx.db, 'clusters', { id: clusterId });
  if (!cluster || cluster.state === 'released' || cluster.assigned_node_count === nodes) return;
  await updateCluster(tx, clusterId, { assigned_node_count: nodes });
}

/** Retires every machine of a cluster, as when they are released from it. */
export async function retireMachines(tx: Tx, clusterId: string): Promise<void> {
  const at = toTime(tx.now);
  const present = { cluster_id: clusterId, retired_at: null };
  await updateRows(tx.db, 'machines', present, { retired_at: at, updated_at: at });
}

function machineOf({ report, retired_at: _, ...row }: Schema['machines']): Machine {
  return {
    ...inCamelCase(row),
    report: report === null ? undefined : (JSON.parse(report) as MachineReport),
  };
}

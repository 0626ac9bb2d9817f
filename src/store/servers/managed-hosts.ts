/** Hosts that have something of ours, by the address at which their cluster's driver knows them, and as it describes them. */
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, listRows, saveRow } from '../engine/rows.ts';

export interface ManagedHost {
  address: string;
  /** For the driver to read. */
  host: string;
}

export async function listManagedHosts(db: Reader, clusterId: string): Promise<ManagedHost[]> {
  const rows = await listRows(db, 'managed_hosts', { cluster_id: clusterId }, 'address');
  return rows.map(({ address, host }) => ({ address, host }));
}

/** Notes a host, or with `host` undefined that it has nothing of ours any more. */
export async function noteManagedHost(
  { db }: Tx,
  clusterId: string,
  { address, host }: { address: string; host: string | undefined },
): Promise<void> {
  if (host === undefined) await deleteRows(db, 'managed_hosts', { cluster_id: clusterId, address });
  else
    await saveRow(db, 'managed_hosts', ['cluster_id', 'address'], { cluster_id: clusterId, address, host });
}

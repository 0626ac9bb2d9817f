/** Hosts that have something of ours, by the address at which their cluster's driver knows them, and as it describes them. */
import type { Reader, Tx } from '../engine/index.ts';

export interface ManagedHost {
  address: string;
  /** For the driver to read. */
  host: string;
}

export async function listManagedHosts(db: Reader, clusterId: string): Promise<ManagedHost[]> {
  return db
    .selectFrom('managed_hosts')
    .select(['address', 'host'])
    .where('cluster_id', '=', clusterId)
    .orderBy('address')
    .execute();
}

/** Notes a host, or with `host` undefined that it has nothing of ours any more. */
export async function noteManagedHost(
  { db }: Tx,
  clusterId: string,
  { address, host }: { address: string; host: string | undefined },
): Promise<void> {
  if (host === undefined)
    await db
      .deleteFrom('managed_hosts')
      .where('cluster_id', '=', clusterId)
      .where('address', '=', address)
      .execute();
  else
    await db
      .insertInto('managed_hosts')
      .values({ cluster_id: clusterId, address, host })
      .onConflict((conflict) => conflict.columns(['cluster_id', 'address']).doUpdateSet({ host }))
      .execute();
}

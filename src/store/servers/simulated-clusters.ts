/** Simulated clusters live in the data directory of one server, so that there is no other where there is one of them. */
import { isSimulated } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import { simulatedRefusal } from '../../domain/server.ts';
import { listDrivenClusters } from '../clusters/clusters.ts';
import type { Tx } from '../engine/index.ts';
import { listOthers } from './servers.ts';

/** Throws `invalid_state` where there are simulated clusters and other servers. */
export async function refuseSimulated(tx: Tx): Promise<void> {
  if (tx.server.isAlone) return;
  const clusters = (await listDrivenClusters(tx.db)).filter(isSimulated);
  if (clusters.length === 0) return;
  const others = await listOthers(tx);
  if (others.length === 0) return;
  const names = clusters.map(({ name }) => name);
  throw new DomainError('invalid_state', simulatedRefusal(names, others));
}

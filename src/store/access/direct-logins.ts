/** Logins past the gateway (`domain/slurm/direct.ts`): the people who are left, and the first login of each by the gateway. */
import type { AccessListUser } from '../../domain/access/manifest.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { type DirectLogins, isDirectOpen } from '../../domain/slurm/direct.ts';
import { findCluster } from '../clusters/clusters.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { listRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

/**
 * The `users` of a cluster's access list who still log in directly, and the accounts that stay; undefined where everyone
 * comes by the gateway. Who revoked their last key is not among them, nor is a member by the name of a service.
 */
export async function findDirectLogins(
  db: Reader,
  { id, organizationId, driver }: Pick<Cluster, 'id' | 'organizationId' | 'driver'>,
  users: readonly AccessListUser[],
  now: number,
): Promise<DirectLogins | undefined> {
  const { direct } = driver.slurm ?? {};
  if (!direct) return undefined;
  const rows = await listRows(db, 'gateway_logins', { cluster_id: id });
  const known = new Set(rows.map((row) => row.user_id));
  const isOpen = isDirectOpen(direct, now);
  const people = users.filter(
    ({ userId, desiredLoginState: state, keySetGeneration }) =>
      isOpen && !known.has(userId) && (state === 'ready' || keySetGeneration === 0),
  );
  const keyless = people.filter(({ keySetGeneration }) => keySetGeneration === 0);
  const named = await listRows(db, 'organization_usernames', { org_id: organizationId });
  const members = new Set(named.map(({ username }) => username));
  return {
    until: direct.until,
    people: people.map(({ username }) => username),
    keyless: keyless.map(({ username }) => username),
    services: (direct.services ?? []).filter((name) => !members.has(name)),
  };
}

/** Keeps a person's first login by the gateway to a cluster. Their direct ones end then, by a new generation of its list. */
export async function noteGatewayLogin(
  tx: Tx,
  { clusterId, userId }: { clusterId: string; userId: string },
): Promise<void> {
  const first = await tx.db
    .insertInto('gateway_logins')
    .values({ cluster_id: clusterId, user_id: userId, first_at: toTime(tx.now) })
    .onConflict((conflict) => conflict.doNothing())
    .returning('user_id')
    .executeTakeFirst();
  const cluster = first && (await findCluster(tx.db, clusterId));
  if (!isDirectOpen(cluster?.driver.slurm?.direct, tx.now)) return;
  await tx.db
    .updateTable('access_lists')
    .set((eb) => ({ generation: eb('generation', '+', 1), updated_at: toTime(tx.now) }))
    .where('cluster_id', '=', clusterId)
    .where('withdrawn', '=', 0)
    .execute();
  tx.changed({ kind: 'cluster', clusterId });
}

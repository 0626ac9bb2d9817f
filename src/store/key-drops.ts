/** When each cluster dropped a revoked key: the moment of its first report that lacks it. */
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { toTime } from './time.ts';

/** From now on waits until the clusters that have a key of the person, or are being given it, have dropped it. */
export async function awaitDrops(
  tx: Tx,
  { userId, keyId, fingerprint }: { userId: string; keyId: string; fingerprint: string },
): Promise<void> {
  const rows = await tx.db
    .selectFrom('access_list_users as l')
    .innerJoin('organization_access_lists as o', 'o.org_id', 'l.org_id')
    .innerJoin('clusters as c', 'c.organization_id', 'l.org_id')
    .select(['c.id', 'o.version', 'l.until_version', 'l.key_fingerprints'])
    .where('l.user_id', '=', userId)
    .where('c.scheduler', '=', 'sunk')
    .where('c.state', '!=', 'released')
    .execute();
  // The first version that lacks the key; where the present one has it, that is the next.
  const without = new Map<string, number>();
  for (const { id, version, until_version: until, key_fingerprints: keys } of rows) {
    if (!(JSON.parse(keys) as string[]).includes(fingerprint)) continue;
    without.set(id, Math.max(without.get(id) ?? 0, until ?? version + 1));
  }
  for (const [clusterId, version] of without) {
    await tx.db
      .insertInto('key_drops')
      .values({ cluster_id: clusterId, key_id: keyId, user_id: userId, version, dropped_at: null })
      .execute();
  }
}

/** Notes which keys a cluster, by the report that was just kept, has dropped; whether there were any. */
export async function noteDrops(tx: Tx, clusterId: string): Promise<boolean> {
  const waiting = await waitingOn(tx.db, clusterId);
  const gone = waiting.filter(
    ({ list_version: known, version, fingerprint, key_fingerprints: keys }) =>
      known >= version && !(JSON.parse(keys ?? '[]') as string[]).includes(fingerprint),
  );
  for (const { key_id: keyId } of gone) {
    await tx.db
      .updateTable('key_drops')
      .set({ dropped_at: toTime(tx.now) })
      .where('cluster_id', '=', clusterId)
      .where('key_id', '=', keyId)
      .execute();
  }
  return gone.length > 0;
}

/** With the keys that the cluster has of their person, by name or by its list version. */
const waitingOn = prepared((db, clusterId: string) =>
  db
    .selectFrom('key_drops as d')
    .innerJoin('ssh_keys as k', 'k.id', 'd.key_id')
    .innerJoin('clusters as c', 'c.id', 'd.cluster_id')
    .innerJoin('observations as o', (join) =>
      join.onRef('o.cluster_id', '=', 'd.cluster_id').on('o.side', '=', 'slurm'),
    )
    .leftJoin('observed_accounts as a', (join) =>
      join.onRef('a.cluster_id', '=', 'd.cluster_id').onRef('a.user_id', '=', 'd.user_id'),
    )
    .leftJoin('access_list_users as l', (join) =>
      join
        .onRef('l.org_id', '=', 'c.organization_id')
        .onRef('l.user_id', '=', 'd.user_id')
        .onRef('l.since_version', '<=', 'o.list_version')
        .on((on) =>
          on.or([on('l.until_version', 'is', null), on('l.until_version', '>', on.ref('o.list_version'))]),
        ),
    )
    .select([
      'd.key_id',
      'd.version',
      'k.fingerprint',
      'o.list_version',
      (eb) => eb.fn.coalesce('a.key_fingerprints', 'l.key_fingerprints').as('key_fingerprints'),
    ])
    .where('d.cluster_id', '=', clusterId)
    .where('d.dropped_at', 'is', null),
);

/** Notes that a cluster has no account of ours any more. */
export async function noteAllDropped(tx: Tx, clusterId: string): Promise<void> {
  await tx.db
    .updateTable('key_drops')
    .set({ dropped_at: toTime(tx.now) })
    .where('cluster_id', '=', clusterId)
    .where('dropped_at', 'is', null)
    .execute();
}

/** The clusters that had a revoked key of the person, and since when (RFC 3339) each does not; null: it still may. */
export async function listDrops(
  db: Reader,
  userId: string,
  keyId: string,
): Promise<{ clusterId: string; clusterName: string; droppedAt: string | null }[]> {
  return db
    .selectFrom('key_drops as d')
    .innerJoin('clusters as c', 'c.id', 'd.cluster_id')
    .select(['c.id as clusterId', 'c.name as clusterName', 'd.dropped_at as droppedAt'])
    .where('d.user_id', '=', userId)
    .where('d.key_id', '=', keyId)
    .orderBy('c.name')
    .orderBy('c.id')
    .execute();
}

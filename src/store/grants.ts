/** Kubernetes resource grants. A grant is live until it is revoked or its time is up, to the second. */
import { newId } from '../domain/id.ts';
import type { Reader, Tx } from './index.ts';
import type { ResourceGrantTable } from './schema.ts';
import { toTime } from './time.ts';

/** The clusters of an organization on which a person holds a live grant. */
export async function listGrantedClusters(
  db: Reader,
  who: { userId: string; orgId: string },
  now: number,
): Promise<string[]> {
  const rows = await liveGrants(db, who.userId, now)
    .innerJoin('clusters', 'clusters.id', 'resource_grants.resource_id')
    .select('resource_grants.resource_id')
    .where('clusters.organization_id', '=', who.orgId)
    .distinct()
    .execute();
  return rows.map((row) => row.resource_id);
}

/** A live grant with its holder's email, as the API shows it. */
export type LiveGrant = Awaited<ReturnType<typeof listLiveGrants>>[number];

/** A person's live grants, oldest first. */
export async function listLiveGrants(db: Reader, userId: string, now: number) {
  return shownGrants(liveGrants(db, userId, now)).execute();
}

/** Everybody's live grants with the names of their clusters, oldest first. */
export async function listAllLiveGrants(db: Reader, now: number) {
  return shownGrants(allLiveGrants(db, now))
    .innerJoin('clusters', 'clusters.id', 'resource_grants.resource_id')
    .select('clusters.name as cluster_name')
    .execute();
}

/** A grant that was not revoked, with the name of its cluster. */
export async function findGrant(db: Reader, grantId: string) {
  return shownGrants(db.selectFrom('resource_grants'))
    .innerJoin('clusters', 'clusters.id', 'resource_grants.resource_id')
    .select(['clusters.name as cluster_name', 'resource_grants.revoked_at'])
    .where('resource_grants.id', '=', grantId)
    .executeTakeFirst();
}

function shownGrants<Q extends ReturnType<typeof allLiveGrants>>(grants: Q) {
  return grants
    .innerJoin('users', 'users.id', 'resource_grants.user_id')
    .select([
      'resource_grants.id',
      'resource_grants.resource_kind',
      'resource_grants.resource_id',
      'resource_grants.user_id',
      'users.primary_email as username',
      'resource_grants.relation',
      'resource_grants.scope',
      'resource_grants.role_id',
      'resource_grants.expires_at',
      'resource_grants.granted_by',
      'resource_grants.granted_at',
    ])
    .orderBy('resource_grants.id');
}

/** Whether a person holds a live grant on a cluster or a part of it. */
export async function hasLiveGrant(
  db: Reader,
  userId: string,
  clusterId: string,
  now: number,
): Promise<boolean> {
  const row = await liveGrants(db, userId, now)
    .select('resource_grants.id')
    .where('resource_grants.resource_id', '=', clusterId)
    .executeTakeFirst();
  return row !== undefined;
}

export async function createGrant(
  tx: Tx,
  grant: Pick<
    ResourceGrantTable,
    'resource_id' | 'user_id' | 'relation' | 'scope' | 'role_id' | 'expires_at'
  > & {
    granted_by: string;
  },
  now: number,
): Promise<string> {
  const id = newId('grant', now);
  await tx.db
    .insertInto('resource_grants')
    .values({
      id,
      resource_kind: 'kubernetes_cluster',
      ...grant,
      granted_at: toTime(now),
      revoked_at: null,
    })
    .execute();
  tx.changed({ clusterId: grant.resource_id });
  return id;
}

/** Ends a grant from this moment on; whether it had not ended before. */
export async function revokeGrant(tx: Tx, grantId: string, now: number): Promise<boolean> {
  const row = await tx.db
    .updateTable('resource_grants')
    .set({ revoked_at: toTime(now) })
    .where('id', '=', grantId)
    .where('revoked_at', 'is', null)
    .returning('resource_id')
    .executeTakeFirst();
  if (row) tx.changed({ clusterId: row.resource_id });
  return row !== undefined;
}

/** Ends every grant on a cluster, as when it goes out of service. */
export async function revokeClusterGrants(tx: Tx, clusterId: string, now: number): Promise<void> {
  await tx.db
    .updateTable('resource_grants')
    .set({ revoked_at: toTime(now) })
    .where('resource_id', '=', clusterId)
    .where('revoked_at', 'is', null)
    .execute();
}

function liveGrants(db: Reader, userId: string, now: number) {
  return allLiveGrants(db, now).where('resource_grants.user_id', '=', userId);
}

function allLiveGrants(db: Reader, now: number) {
  return db
    .selectFrom('resource_grants')
    .where('resource_grants.revoked_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('resource_grants.expires_at', 'is', null),
        eb('resource_grants.expires_at', '>', toTime(now)),
      ]),
    );
}

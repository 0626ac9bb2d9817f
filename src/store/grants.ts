/**
 * Kubernetes resource grants. A grant is live until it is revoked or its time is up, to the second. No other file reads their
 * table: whoever wants grants gets live ones, and cannot forget to ask for them.
 */
import { newId } from '../domain/id.ts';
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import type { ResourceGrantTable } from './schema.ts';
import { toTime } from './time.ts';

/** The clusters of an organization on which a person holds a live grant. */
export async function listGrantedClusters(
  db: Reader,
  who: { userId: string; orgId: string },
  now: number,
): Promise<string[]> {
  const rows = await liveGrants(db, now)
    .where('g.user_id', '=', who.userId)
    .innerJoin('clusters', 'clusters.id', 'g.resource_id')
    .select('g.resource_id')
    .where('clusters.organization_id', '=', who.orgId)
    .distinct()
    .execute();
  return rows.map((row) => row.resource_id);
}

/** A live grant with its holder's email, as the API shows it. */
export type LiveGrant = Awaited<ReturnType<typeof listLiveGrants>>[number];

/** A person's live grants, oldest first. */
export async function listLiveGrants(db: Reader, userId: string, now: number) {
  return shownGrants(liveGrants(db, now)).where('g.user_id', '=', userId).execute();
}

/** Everybody's live grants with the names of their clusters, oldest first. */
export async function listAllLiveGrants(db: Reader, now: number) {
  return shownGrants(liveGrants(db, now))
    .innerJoin('clusters', 'clusters.id', 'g.resource_id')
    .select('clusters.name as cluster_name')
    .execute();
}

/** A grant that was not revoked, with the name of its cluster. */
export async function findGrant(db: Reader, grantId: string) {
  return shownGrants(db.selectFrom('resource_grants as g'))
    .innerJoin('clusters', 'clusters.id', 'g.resource_id')
    .select(['clusters.name as cluster_name', 'g.revoked_at'])
    .where('g.id', '=', grantId)
    .executeTakeFirst();
}

function shownGrants<Q extends ReturnType<typeof liveGrants>>(grants: Q) {
  return grants
    .innerJoin('users', 'users.id', 'g.user_id')
    .select([
      'g.id',
      'g.resource_kind',
      'g.resource_id',
      'g.user_id',
      'users.primary_email as username',
      'g.relation',
      'g.scope',
      'g.role_id',
      'g.expires_at',
      'g.granted_by',
      'g.granted_at',
    ])
    .orderBy('g.id');
}

/** Whether a person holds a live grant on a cluster or a part of it. */
export async function hasLiveGrant(
  db: Reader,
  userId: string,
  clusterId: string,
  now: number,
): Promise<boolean> {
  const row = await liveGrants(db, now)
    .where('g.user_id', '=', userId)
    .select('g.id')
    .where('g.resource_id', '=', clusterId)
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

/**
 * The clusters that a change of a person's account can concern. Grants whose time is up are among them: looking at one
 * cluster too many does no harm.
 */
export const listClustersOfGrants = prepared((db, userId: string) =>
  db
    .selectFrom('resource_grants')
    .innerJoin('clusters', 'clusters.id', 'resource_grants.resource_id')
    .select('clusters.id')
    .distinct()
    .where('clusters.state', '!=', 'released')
    .where('resource_grants.user_id', '=', userId)
    .where('resource_grants.revoked_at', 'is', null),
);

/** The grants (`g`) that are live at a moment: the beginning of every query that reads them. */
export function liveGrants(db: Reader, now: number) {
  return db
    .selectFrom('resource_grants as g')
    .where('g.revoked_at', 'is', null)
    .where((eb) => eb.or([eb('g.expires_at', 'is', null), eb('g.expires_at', '>', toTime(now))]));
}

/** The IDs of all grants that a person ever had on a cluster, live or not: only to know by them what should be gone. */
export async function listEverGranted(db: Reader, clusterId: string, userId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('resource_grants')
    .select('id')
    .where('resource_id', '=', clusterId)
    .where('user_id', '=', userId)
    .execute();
  return rows.map(({ id }) => id);
}

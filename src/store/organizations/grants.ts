/**
 * Kubernetes resource grants. A grant is live until it is revoked or expires, to the second. No other file reads their table, so
 * that callers get live grants only, and cannot forget that filter.
 */
import type { Grant, GrantTerms } from '../../domain/access/grant.ts';
import { newId } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

/** The clusters of an organization on which a person holds a live grant. */
export async function listGrantedClusters(
  db: Reader,
  who: { userId: string; organizationId: string },
  now: number,
): Promise<string[]> {
  const rows = await liveGrants(db, toTime(now))
    .where('g.user_id', '=', who.userId)
    .innerJoin('clusters', 'clusters.id', 'g.resource_id')
    .select('g.resource_id')
    .where('clusters.organization_id', '=', who.organizationId)
    .distinct()
    .execute();
  return rows.map((row) => row.resource_id);
}

export async function listLiveGrants(db: Reader, userId: string, now: number): Promise<Grant[]> {
  return shownGrants(liveGrants(db, toTime(now)))
    .where('g.user_id', '=', userId)
    .execute();
}

export async function listAllLiveGrants(db: Reader, now: number): Promise<Grant[]> {
  return shownGrants(liveGrants(db, toTime(now))).execute();
}

/** All grants that were live at a time (RFC 3339), oldest first. */
export async function listAllGrantsAt(db: Reader, at: string): Promise<Grant[]> {
  return shownGrants(db.selectFrom('resource_grants as g'))
    .where('g.granted_at', '<=', at)
    .where((eb) => eb.or([eb('g.revoked_at', 'is', null), eb('g.revoked_at', '>', at)]))
    .where((eb) => eb.or([eb('g.expires_at', 'is', null), eb('g.expires_at', '>', at)]))
    .execute();
}

/** A grant, live or not. */
export async function findGrant(db: Reader, grantId: string): Promise<Grant | undefined> {
  const all = shownGrants(db.selectFrom('resource_grants as g'));
  return all.where('g.id', '=', grantId).executeTakeFirst();
}

function shownGrants(grants: ReturnType<typeof liveGrants>) {
  return grants
    .innerJoin('users', 'users.id', 'g.user_id')
    .innerJoin('clusters', 'clusters.id', 'g.resource_id')
    .select([
      'g.id',
      'g.resource_id as clusterId',
      'clusters.name as clusterName',
      'g.user_id as userId',
      'users.primary_email as email',
      'g.relation',
      'g.scope',
      'g.role_id as roleId',
      'g.expires_at as expiresAt',
      'g.granted_by as grantedBy',
      'g.granted_at as grantedAt',
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
  const live = liveGrants(db, toTime(now)).select('g.id').where('g.user_id', '=', userId);
  return (await live.where('g.resource_id', '=', clusterId).executeTakeFirst()) !== undefined;
}

export async function createGrant(
  tx: Tx,
  grant: GrantTerms & Pick<Grant, 'expiresAt' | 'grantedBy'>,
): Promise<string> {
  const id = newId('grant', tx.now);
  await insertRow(tx.db, 'resource_grants', {
    id,
    resource_id: grant.clusterId,
    user_id: grant.userId,
    relation: grant.relation,
    scope: grant.scope,
    role_id: grant.roleId,
    expires_at: grant.expiresAt,
    granted_by: grant.grantedBy,
    granted_at: toTime(tx.now),
    revoked_at: null,
  });
  tx.changed({ kind: 'cluster', clusterId: grant.clusterId });
  return id;
}

/** Ends a grant from this moment on; returns whether it had not ended before. */
export async function revokeGrant(tx: Tx, grantId: string): Promise<boolean> {
  const row = await findRow(tx.db, 'resource_grants', { id: grantId, revoked_at: null });
  if (!row) return false;
  await updateRows(tx.db, 'resource_grants', { id: grantId }, { revoked_at: toTime(tx.now) });
  tx.changed({ kind: 'cluster', clusterId: row.resource_id });
  return true;
}

/** Ends every grant on a cluster, as when it goes out of service. */
export async function revokeClusterGrants(tx: Tx, clusterId: string): Promise<void> {
  const open = { resource_id: clusterId, revoked_at: null };
  await updateRows(tx.db, 'resource_grants', open, { revoked_at: toTime(tx.now) });
}

/**
 * The clusters that a change of a person's account can concern. Expired grants count as well: one cluster too many
 * does no harm.
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

/** The grants (`g`) that are live at a time (RFC 3339): the beginning of every query that reads them. */
export function liveGrants(db: Reader, at: string) {
  return db
    .selectFrom('resource_grants as g')
    .where('g.revoked_at', 'is', null)
    .where((eb) => eb.or([eb('g.expires_at', 'is', null), eb('g.expires_at', '>', at)]));
}

/** The IDs of all grants that a person ever had on a cluster, live or not: they only serve to recognize leftovers. */
export async function listEverGranted(db: Reader, clusterId: string, userId: string): Promise<string[]> {
  const rows = await listRows(db, 'resource_grants', { resource_id: clusterId, user_id: userId });
  return rows.map(({ id }) => id);
}

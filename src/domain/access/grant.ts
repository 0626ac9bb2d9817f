/** Kubernetes resource grants and what they give access to (contract, "Resource grant"). */
import { isAbove, relationRoles } from '../kubernetes/bindings.ts';

/** Kubernetes access to one cluster or one of its namespaces, with or without membership. */
export interface Grant {
  id: string;
  clusterId: string;
  clusterName: string;
  userId: string;
  email: string;
  relation: keyof typeof relationRoles;
  scope: string | null;
  /** The ClusterRole, if it is not the default of the relation. */
  roleId: string | null;
  /** RFC 3339; null: the grant has no end and has to be revoked. */
  expiresAt: string | null;
  grantedBy: string;
  grantedAt: string;
}

/** The identity of a grant: two live grants with equal terms are the same grant. */
export type GrantTerms = Pick<Grant, 'clusterId' | 'userId' | 'relation' | 'scope' | 'roleId'>;

export function isSameGrant(one: GrantTerms, other: GrantTerms): boolean {
  return (['clusterId', 'userId', 'relation', 'scope', 'roleId'] as const).every(
    (field) => one[field] === other[field],
  );
}

/** Checks that a grant of this scope (null: the whole cluster) covers a namespace, or any part of the cluster for undefined. */
export function coversNamespace(scope: string | null, namespace: string | undefined): boolean {
  return namespace === undefined || scope === null || scope === namespace;
}

/**
 * True if the grant's role is known to give more than its relation: `role_id` narrows a relation (contract, "Resource grant").
 * The rules of a site's own role are not known here; the API server refuses to bind one that exceeds our credentials.
 */
export function isWiderRole(grant: {
  relation: keyof typeof relationRoles;
  namespace?: string | undefined;
  roleId?: string | undefined;
}): boolean {
  const { relation, namespace, roleId } = grant;
  if (roleId === undefined) return false;
  return isAbove(roleId, relationRoles[relation][namespace === undefined ? 'cluster' : 'namespace']);
}

/** The grant with the latest end (null: no end); undefined for an empty list. */
export function longestLasting(grants: readonly Grant[]): Grant | undefined {
  return grants.reduce<Grant | undefined>((best, grant) => {
    if (!best || best.expiresAt === null) return best ?? grant;
    return grant.expiresAt === null || grant.expiresAt > best.expiresAt ? grant : best;
  }, undefined);
}

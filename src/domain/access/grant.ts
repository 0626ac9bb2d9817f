/** Kubernetes resource grants: what they open (contract, "Resource grant"). */
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
  /** The ClusterRole, where it is not the one of the relation. */
  roleId: string | null;
  /** RFC 3339; null: it ends when it is revoked. */
  expiresAt: string | null;
  grantedBy: string;
  grantedAt: string;
}

/** What is granted to whom: two live grants that agree in this are the same. */
export type GrantTerms = Pick<Grant, 'clusterId' | 'userId' | 'relation' | 'scope' | 'roleId'>;

export function isSameGrant(one: GrantTerms, other: GrantTerms): boolean {
  return (['clusterId', 'userId', 'relation', 'scope', 'roleId'] as const).every(
    (field) => one[field] === other[field],
  );
}

/** Whether a grant of this scope (null: the whole cluster) reaches a namespace, or any part where none is asked for. */
export function coversNamespace(scope: string | null, namespace: string | undefined): boolean {
  return namespace === undefined || scope === null || scope === namespace;
}

/**
 * Whether a grant's role is known to give more than its relation does: `role_id` narrows a relation (contract, "Resource
 * grant"). Of a site's own role only the site knows what it gives, and it may be bound only where our credentials may.
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

/** Of grants that all admit someone, the one that lasts longest (null: for good); undefined when there is none. */
export function longestLasting(grants: readonly Grant[]): Grant | undefined {
  return grants.reduce<Grant | undefined>((best, grant) => {
    if (!best || best.expiresAt === null) return best ?? grant;
    return grant.expiresAt === null || grant.expiresAt > best.expiresAt ? grant : best;
  }, undefined);
}

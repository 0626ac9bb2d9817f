/** Kubernetes resource grants: what they open (contract, "Resource grant"). */
import { isAbove, relationRoles } from './kubernetes-bindings.ts';

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
export function longestLasting<G extends { expires_at: string | null }>(grants: readonly G[]): G | undefined {
  return grants.reduce<G | undefined>((best, grant) => {
    if (!best || best.expires_at === null) return best ?? grant;
    return grant.expires_at === null || grant.expires_at > best.expires_at ? grant : best;
  }, undefined);
}

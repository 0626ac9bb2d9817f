/** Kubernetes resource grants: what they open (contract, "Resource grant"). */

export type Relation = 'kubernetes.viewer' | 'kubernetes.developer' | 'kubernetes.admin';

/** A grant on a cluster. Times are RFC 3339 text. */
export interface Grant {
  id: string;
  clusterId: string;
  userId: string;
  relation: Relation;
  /** A namespace; null for the whole cluster. */
  scope: string | null;
  expiresAt: string | null;
}

/** Whether a grant reaches a part of its cluster: any part where no namespace is asked for. */
export function coversNamespace(grant: Pick<Grant, 'scope'>, namespace: string | undefined): boolean {
  return namespace === undefined || grant.scope === null || grant.scope === namespace;
}

/** Of grants that all admit someone, the one that lasts longest; undefined when there is none. */
export function longestLasting<G extends Pick<Grant, 'expiresAt'>>(grants: readonly G[]): G | undefined {
  return grants.reduce<G | undefined>((best, grant) => {
    if (!best || best.expiresAt === null) return best ?? grant;
    return grant.expiresAt === null || grant.expiresAt > best.expiresAt ? grant : best;
  }, undefined);
}

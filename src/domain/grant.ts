/** Kubernetes resource grants: what they open (contract, "Resource grant"). */

/** Whether a grant of this scope (null: the whole cluster) reaches a namespace, or any part where none is asked for. */
export function coversNamespace(scope: string | null, namespace: string | undefined): boolean {
  return namespace === undefined || scope === null || scope === namespace;
}

/** Of grants that all admit someone, the one that lasts longest (null: for good); undefined when there is none. */
export function longestLasting<G extends { expires_at: string | null }>(grants: readonly G[]): G | undefined {
  return grants.reduce<G | undefined>((best, grant) => {
    if (!best || best.expires_at === null) return best ?? grant;
    return grant.expires_at === null || grant.expires_at > best.expires_at ? grant : best;
  }, undefined);
}

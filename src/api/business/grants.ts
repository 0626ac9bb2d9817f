/** Kubernetes grants on single clusters, and whether a person may pass a gate. */
import { coversNamespace, type Grant, longestLasting } from '../../domain/access/grant.ts';
import { type Cluster, sidesOf } from '../../domain/clusters/cluster.ts';
import { type DomainError, forbidden } from '../../domain/error.ts';
import { grantAccessState } from '../../domain/kubernetes/bindings.ts';
import { holdsStaffKey } from '../../domain/people/person.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { findBound } from '../../store/clusters/cluster-sides.ts';
import { findCluster } from '../../store/clusters/clusters.ts';
import type { Reader } from '../../store/engine/index.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { Operation } from './operation.ts';

const resourceKind = 'kubernetes_cluster' as const;

export const listResourceGrants: Operation<'listResourceGrants'> = async (
  { store },
  { caller, query, now },
) => {
  if (query.kind !== undefined && query.kind !== resourceKind) return { grants: [] };
  return { grants: (await listLiveGrants(store.read, caller.userId, now)).map(grantBody) };
};

export const listMyKubernetesAccess: Operation<'listMyKubernetesAccess'> = async (
  { store },
  { caller, now },
) => {
  const grants = await listLiveGrants(store.read, caller.userId, now);
  const observed = await observeGrants(store.read, grants);
  return {
    grants: observed.map(({ grant, cluster, access }) => ({
      grant_id: grant.id,
      cluster_id: cluster.id,
      cluster_name: cluster.name,
      organization_id: cluster.organizationId,
      ...access,
    })),
  };
};

/** Grants with their clusters, and whether each is in force; those on clusters without a Kubernetes side are left out. */
async function observeGrants(
  db: Reader,
  grants: readonly Grant[],
): Promise<{ grant: Grant; cluster: Cluster; access: ReturnType<typeof grantAccessState> }[]> {
  const ids = [...new Set(grants.map((grant) => grant.clusterId))];
  const found = await Promise.all(
    ids.map(async (id) => {
      const [cluster, bound] = await Promise.all([findCluster(db, id), findBound(db, id)]);
      return cluster && sidesOf(cluster).includes('kubernetes') ? { cluster, bound } : undefined;
    }),
  );
  const byId = new Map(found.flatMap((one) => (one ? [[one.cluster.id, one]] : [])));
  return grants.flatMap((grant) => {
    const on = byId.get(grant.clusterId);
    return on ? [{ grant, cluster: on.cluster, access: grantAccessState(grant.id, on.bound) }] : [];
  });
}

/** By which way the caller passes a gate of a cluster: organization, then grant, then staff. */
export const getResourceAccess: Operation<'getResourceAccess'> = async (
  { store },
  { caller, query, now },
) => {
  const { kind, gate, scope } = query;
  const { userId } = caller;
  const id = query.id.toLowerCase();
  const passed = { user_id: userId, kind, id, gate };
  const cluster = await findCluster(store.read, id);
  if (!cluster) throw noAccess();
  const membership = await findMembership(store.read, cluster.organizationId, userId, now);
  if (membership?.permissions.has(gate === 'read' ? 'clusters.read' : 'clusters.kubernetes')) {
    return { ...passed, via: 'organization' };
  }
  const grants = await listLiveGrants(store.read, userId, now);
  const grant = longestLasting(
    grants.filter((one) => one.clusterId === id && coversNamespace(one.scope, scope)),
  );
  if (grant) {
    return { ...passed, via: 'grant', grant_id: grant.id, ...present({ expires_at: grant.expiresAt }) };
  }
  // Operators do not get into Kubernetes by being operators.
  if (gate === 'read' && holdsStaffKey(await listStaffKeys(store.read, userId), 'staff.read')) {
    return { ...passed, via: 'staff' };
  }
  throw noAccess();
};

export async function observedGrantBodies(db: Reader, grants: readonly Grant[]) {
  const observed = await observeGrants(db, grants);
  const accessOf = new Map(observed.map(({ grant, access }) => [grant.id, access]));
  return grants.map((grant) => ({
    ...namedGrantBody(grant),
    ...present({ access: accessOf.get(grant.id) }),
  }));
}

export function namedGrantBody(grant: Grant) {
  return { grant: grantBody(grant), cluster_name: grant.clusterName };
}

function grantBody(grant: Grant) {
  return {
    resource_kind: resourceKind,
    resource_id: grant.clusterId,
    username: grant.email,
    ...snakeCased(grant, ['id', 'userId', 'relation', 'grantedBy', 'grantedAt']),
    ...present(snakeCased(grant, ['scope', 'roleId', 'expiresAt'])),
  };
}

function noAccess(): DomainError {
  return forbidden('You have no access to this cluster through this gate.');
}

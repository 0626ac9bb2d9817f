/** Kubernetes grants on single clusters: the list, the check of a gate, and how operators create and revoke them. */
import {
  coversNamespace,
  type Grant,
  isSameGrant,
  isWiderRole,
  longestLasting,
} from '../../domain/access/grant.ts';
import { type Cluster, isInService, sidesOf } from '../../domain/clusters/cluster.ts';
import { type DomainError, forbidden, invalidRequest, invalidState, notFound } from '../../domain/error.ts';
import { grantAccessState } from '../../domain/kubernetes/bindings.ts';
import { foldEmail, holdsStaffKey } from '../../domain/people/person.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { findBound } from '../../store/clusters/cluster-sides.ts';
import { findCluster } from '../../store/clusters/clusters.ts';
import type { Reader } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import {
  createGrant,
  findGrant,
  listAllLiveGrants,
  listLiveGrants,
  revokeGrant,
} from '../../store/organizations/grants.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { findOrCreatePerson, listStaffKeys } from '../../store/people/people.ts';
import type { Operation } from './operation.ts';
import { operatorWrites, requireCluster, staffReads } from './operator/about.ts';

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

/** Adds to each grant its cluster and whether it is in force; skips grants on clusters without a Kubernetes side. */
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

/** How the caller passes a gate of a cluster: by organization, else by grant, else as staff. */
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
  // Being an operator gives no Kubernetes access.
  if (gate === 'read' && holdsStaffKey(await listStaffKeys(store.read, userId), 'staff.read')) {
    return { ...passed, via: 'staff' };
  }
  throw noAccess();
};

export const operatorListGrants = staffReads<'operatorListGrants'>(async ({ store }, { now }) => {
  const grants = await listAllLiveGrants(store.read, now);
  return { grants: await observedGrantBodies(store.read, grants) };
});

export const operatorCreateGrant = operatorWrites('operatorCreateGrant', (_, { body, caller, now }) => {
  const { relation, scope = null, role_id: roleId = null, allow_wider_role: isMeant = false } = body;
  const email = foldEmail(body.email);
  const clusterId = body.cluster_id.toLowerCase();
  const expiresAt = body.expires_at === undefined ? null : toTime(fromTime(body.expires_at));
  return {
    meaning: [email, clusterId, relation, scope, roleId, expiresAt],
    about: {
      target: scope === null ? clusterId : `${clusterId}/${scope}`,
      clusterId,
      details: `${relation}${roleId === null ? '' : ` as ${roleId}`} to ${email}`,
    },
    async apply(tx) {
      // Checked only here: a replay gets its reply even after the end has passed.
      if (expiresAt !== null && fromTime(expiresAt) <= now) {
        throw invalidRequest('expires_at has passed already.');
      }
      if (!isMeant && isWiderRole({ relation, namespace: body.scope, roleId: body.role_id })) {
        throw invalidRequest(
          `The role ${roleId} gives more than ${relation}. Give the relation that is meant, or set allow_wider_role.`,
        );
      }
      const cluster = await requireCluster(tx.db, clusterId);
      if (!isInService(cluster)) {
        throw invalidState(`The cluster ${cluster.name} is out of service.`);
      }
      const { userId } = await findOrCreatePerson(tx, { email });
      const wanted = { clusterId, userId, relation, scope, roleId };
      const same = (await listLiveGrants(tx.db, userId, now)).find((grant) => isSameGrant(grant, wanted));
      if (same) throw invalidState(`${email} holds this grant already: ${same.id}. Revoke it first.`);
      const id = await createGrant(tx, { ...wanted, expiresAt, grantedBy: caller.userId });
      const about = { target: id, subjectUserId: userId, organizationId: cluster.organizationId };
      return { result: namedGrantBody(await requireGrant(tx.db, id)), about };
    },
  };
});

export const operatorRevokeGrant = operatorWrites('operatorRevokeGrant', (_, { path: { grantID: id } }) => ({
  meaning: [id],
  about: { target: id },
  async apply(tx) {
    const grant = await requireGrant(tx.db, id);
    await revokeGrant(tx, id);
    const { clusterId, userId: subjectUserId, relation, email } = grant;
    return {
      result: namedGrantBody(grant),
      about: { clusterId, subjectUserId, details: `${relation} of ${email}` },
    };
  },
}));

async function requireGrant(db: Reader, id: string): Promise<Grant> {
  const grant = await findGrant(db, id);
  if (!grant) throw notFound('There is no such grant.');
  return grant;
}

export async function observedGrantBodies(db: Reader, grants: readonly Grant[]) {
  const observed = await observeGrants(db, grants);
  const accessOf = new Map(observed.map(({ grant, access }) => [grant.id, access]));
  return grants.map((grant) => ({
    ...namedGrantBody(grant),
    ...present({ access: accessOf.get(grant.id) }),
  }));
}

function namedGrantBody(grant: Grant) {
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

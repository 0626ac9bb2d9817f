/** Kubernetes grants, as operators give and end them. */

import { isInService } from '../../domain/cluster.ts';
import { foldEmail } from '../../domain/email.ts';
import { DomainError } from '../../domain/error.ts';
import { isWiderRole } from '../../domain/grant.ts';
import type { CommandReply } from '../../domain/operation.ts';
import { findCluster } from '../../store/clusters.ts';
import {
  createGrant,
  findGrant,
  listAllLiveGrants,
  listLiveGrants,
  revokeGrant,
} from '../../store/grants.ts';
import type { Tx } from '../../store/index.ts';
import { fromTime, toTime } from '../../store/time.ts';
import { findOrCreateUser } from '../../store/users.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { grantBody, observeGrants } from '../resource-grants.ts';
import { operatorCommand } from './command.ts';
import { requireStaff } from './staff.ts';

/** Every live grant, oldest first. */
export async function operatorListGrants(
  { store }: BusinessDeps,
  { caller, now }: BusinessRequest<'operatorListGrants'>,
): Promise<BusinessReply<'operatorListGrants'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const grants = await listAllLiveGrants(store.read, now);
  const observed = await observeGrants(store.read, grants);
  const accessOf = new Map(observed.map(({ grant, access }) => [grant.id, access]));
  return {
    grants: grants.map((grant) => {
      const access = accessOf.get(grant.id);
      return { ...operatorGrantBody(grant), ...(access && { access }) };
    }),
  };
}

/** Shares a cluster, or a namespace of it; the person gets an account where there is none. */
export function operatorCreateGrant(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorCreateGrant'>,
): Promise<CommandReply<BusinessReply<'operatorCreateGrant'>>> {
  const { body, caller, now } = request;
  const { relation, scope = null, role_id = null, allow_wider_role = false } = body;
  const email = foldEmail(body.email);
  const clusterId = body.cluster_id.toLowerCase();
  const expires_at = body.expires_at === undefined ? null : toTime(fromTime(body.expires_at));
  const where = scope === null ? clusterId : `${clusterId}/${scope}`;
  const what = {
    operation: 'operatorCreateGrant',
    meaning: [email, clusterId, relation, scope, role_id, expires_at],
    about: {
      target: where,
      cluster_id: clusterId,
      details: `${relation}${role_id === null ? '' : ` as ${role_id}`} to ${email}`,
    },
  };
  return operatorCommand(deps, request, what, async (tx) => {
    // Only now: a replay is answered though the time has come.
    if (expires_at !== null && fromTime(expires_at) <= now) {
      throw new DomainError('invalid_request', 'expires_at has passed already.');
    }
    if (!allow_wider_role && isWiderRole({ relation, namespace: body.scope, roleId: body.role_id })) {
      throw new DomainError(
        'invalid_request',
        `The role ${role_id} gives more than ${relation}. Give the relation that is meant, or set allow_wider_role.`,
      );
    }
    const cluster = await findCluster(tx.db, clusterId);
    if (!cluster) throw new DomainError('not_found', 'There is no such cluster.');
    if (!isInService(cluster)) {
      throw new DomainError('invalid_state', `The cluster ${cluster.name} is out of service.`);
    }
    const { userId } = await findOrCreateUser(tx, { email }, now);
    const wanted = { resource_id: clusterId, relation, scope, role_id };
    const same = (await listLiveGrants(tx.db, userId, now)).find((grant) =>
      (['resource_id', 'relation', 'scope', 'role_id'] as const).every(
        (field) => grant[field] === wanted[field],
      ),
    );
    if (same)
      throw new DomainError(
        'invalid_state',
        `${email} holds this grant already: ${same.id}. Revoke it first.`,
      );
    const grant = { ...wanted, user_id: userId, expires_at, granted_by: caller.userId };
    const id = await createGrant(tx, grant, now);
    const about = { target: id, subject_user_id: userId, organization_id: cluster.organizationId };
    return { result: await grantReply(tx, id), about };
  });
}

/** Ends a grant, from this second on. */
export function operatorRevokeGrant(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorRevokeGrant'>,
): Promise<CommandReply<BusinessReply<'operatorRevokeGrant'>>> {
  const { grantID: id } = request.path;
  const what = { operation: 'operatorRevokeGrant', meaning: [id], about: { target: id } };
  return operatorCommand(deps, request, what, async (tx) => {
    const { grant, cluster_name } = await grantReply(tx, id);
    await revokeGrant(tx, id, request.now);
    const about = {
      cluster_id: grant.resource_id,
      subject_user_id: grant.user_id,
      details: `${grant.relation} of ${grant.username}`,
    };
    return { result: { grant, cluster_name }, about };
  });
}

async function grantReply(tx: Tx, id: string) {
  const found = await findGrant(tx.db, id);
  if (!found) throw new DomainError('not_found', 'There is no such grant.');
  const { revoked_at: _, ...grant } = found;
  return operatorGrantBody(grant);
}

function operatorGrantBody({
  cluster_name,
  ...grant
}: Awaited<ReturnType<typeof listAllLiveGrants>>[number]) {
  return { grant: grantBody(grant), cluster_name };
}

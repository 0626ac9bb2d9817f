/** Kubernetes grants, as operators give and end them. */
import { type Grant, isSameGrant, isWiderRole } from '../../../domain/access/grant.ts';
import { isInService } from '../../../domain/clusters/cluster.ts';
import { invalidRequest, invalidState, notFound } from '../../../domain/error.ts';
import { foldEmail } from '../../../domain/people/person.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import type { Tx } from '../../../store/engine/index.ts';
import { fromTime, toTime } from '../../../store/engine/time.ts';
import {
  createGrant,
  findGrant,
  listAllLiveGrants,
  listLiveGrants,
  revokeGrant,
} from '../../../store/organizations/grants.ts';
import { findOrCreatePerson } from '../../../store/people/people.ts';
import { namedGrantBody, observedGrantBodies } from '../grants.ts';
import type { Operation } from '../operation.ts';
import { requireCluster, requireOperator, staffReads } from './about.ts';

export const operatorListGrants = staffReads<'operatorListGrants'>(async ({ store }, { now }) => {
  const grants = await listAllLiveGrants(store.read, now);
  return { grants: await observedGrantBodies(store.read, grants) };
});

export const operatorCreateGrant: Operation<'operatorCreateGrant'> = (deps, request) => {
  const { body, caller, now } = request;
  const { relation, scope = null, role_id: roleId = null, allow_wider_role: isMeant = false } = body;
  const email = foldEmail(body.email);
  const clusterId = body.cluster_id.toLowerCase();
  const expiresAt = body.expires_at === undefined ? null : toTime(fromTime(body.expires_at));
  const where = scope === null ? clusterId : `${clusterId}/${scope}`;
  return runCommand(deps.store, request, {
    operation: 'operatorCreateGrant',
    meaning: [email, clusterId, relation, scope, roleId, expiresAt],
    about: {
      target: where,
      clusterId,
      details: `${relation}${roleId === null ? '' : ` as ${roleId}`} to ${email}`,
    },
    authorize: requireOperator,
    async apply(tx) {
      // Only now: a replay is answered though the time has come.
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
      return { result: namedGrantBody(await requireGrant(tx, id)), about };
    },
  });
};

export const operatorRevokeGrant: Operation<'operatorRevokeGrant'> = (deps, request) => {
  const { grantID: id } = request.path;
  return runCommand(deps.store, request, {
    operation: 'operatorRevokeGrant',
    meaning: [id],
    about: { target: id },
    authorize: requireOperator,
    async apply(tx) {
      const grant = await requireGrant(tx, id);
      await revokeGrant(tx, id);
      const about = {
        clusterId: grant.clusterId,
        subjectUserId: grant.userId,
        details: `${grant.relation} of ${grant.email}`,
      };
      return { result: namedGrantBody(grant), about };
    },
  });
};

async function requireGrant(tx: Tx, id: string): Promise<Grant> {
  const grant = await findGrant(tx.db, id);
  if (!grant) throw notFound('There is no such grant.');
  return grant;
}

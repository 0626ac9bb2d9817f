/** Taking everything from a person who left: doing it, and what that would do on the clusters, tried out and taken back. */
import { DomainError, invalidState } from '../../../domain/error.ts';
import { inPart, type Tx, tryOut } from '../../../store/engine/index.ts';
import { listLiveGrants, revokeGrant } from '../../../store/organizations/grants.ts';
import { removeMembership } from '../../../store/organizations/membership-changes.ts';
import { listMembershipsOf } from '../../../store/organizations/memberships.ts';
import { updateLifecycle, updateStaffKeys } from '../../../store/people/people.ts';
import { listSshKeys, revokeSshKey } from '../../../store/people/ssh-keys.ts';
import { effectsIn, reachOf, takePlan } from '../member-plan.ts';
import type { Operation } from '../operation.ts';
import { requirePerson } from './about.ts';
import { requireOperator } from './staff.ts';

/** Ends sign-in, memberships, grants, staff keys and SSH keys. Throws `invalid_state` for the last owner of an organization. */
export async function deactivate(tx: Tx, userId: string): Promise<void> {
  for (const { organizationId } of await listMembershipsOf(tx.db, userId)) {
    await removeMembership(tx, { organizationId, userId });
  }
  for (const { id } of await listLiveGrants(tx.db, userId, tx.now)) await revokeGrant(tx, id);
  for (const key of await listSshKeys(tx.db, userId)) await revokeSshKey(tx, { userId, keyId: key.id });
  await updateStaffKeys(tx, { userId, keys: [] });
  await updateLifecycle(tx, { userId, state: 'deactivated' });
}

/** What deactivating a person would do on the clusters of all their organizations. */
export const operatorPlanDeactivation: Operation<'operatorPlanDeactivation'> = async (deps, request) => {
  const { store, gateway } = deps;
  const userId = request.path.userID;
  takePlan(request.caller.userId);
  const sessions = await gateway.sessions();
  return tryOut(store, async (opened) => {
    const tx = { ...opened, now: request.now };
    await requireOperator(tx, request.caller);
    const { email, lifecycleState } = await requirePerson(tx.db, userId);
    if (lifecycleState !== 'active') throw invalidState('This account is deactivated.');
    const memberships = await listMembershipsOf(tx.db, userId);
    const before = new Map<string, Awaited<ReturnType<typeof reachOf>>>();
    for (const { organizationId } of memberships)
      before.set(organizationId, await reachOf(tx, organizationId, userId));
    const change = { change: 'remove', email, user_id: userId } as const;
    try {
      await inPart(tx, () => deactivate(tx, userId));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const { code, message } = error;
      return { changes: [{ ...change, result: 'refused', code, message }], clusters: [] };
    }
    const effects = [];
    for (const [organizationId, reach] of before) {
      const person = { userId, before: reach, after: undefined };
      effects.push(...(await effectsIn(tx.db, organizationId, [person], sessions)));
    }
    return { changes: [{ ...change, result: 'planned' }], clusters: effects };
  });
};

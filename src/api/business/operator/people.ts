/** People with an account, as operators see and manage them. */
import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { dayMs } from '../../../domain/access/lapse.ts';
import { DomainError, invalidRequest, invalidState } from '../../../domain/error.ts';
import { isId } from '../../../domain/id.ts';
import { foldEmail, holdsStaffKey } from '../../../domain/people/person.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { erasePerson } from '../../../store/audit/erasure.ts';
import { type Tx, tryOut } from '../../../store/engine/index.ts';
import { fromTime, toTime } from '../../../store/engine/time.ts';
import { listLiveGrants, revokeGrant } from '../../../store/organizations/grants.ts';
import { removeMembership } from '../../../store/organizations/membership-changes.ts';
import { listMembershipsOf } from '../../../store/organizations/memberships.ts';
import { setPassword } from '../../../store/people/identities.ts';
import {
  findOrCreatePerson,
  findPerson,
  listPeople,
  listStaffKeys,
  updateEmail,
  updateLifecycle,
  updateSignInExemption,
  updateStaffKeys,
} from '../../../store/people/people.ts';
import { listSshKeys, revokeSshKey } from '../../../store/people/ssh-keys.ts';
import { planOfPerson, takePlan } from '../member-plan.ts';
import type { Operation } from '../operation.ts';
import {
  changePerson,
  personBody,
  personReply,
  requireActive,
  requireNotErased,
  requireOperator,
  requirePerson,
  staffReads,
} from './about.ts';

export const operatorListPeople = staffReads<'operatorListPeople'>(async ({ store }, { query }) => {
  const { after, email, limit = 50 } = query;
  if (after !== undefined && !isId('user', after)) {
    throw new DomainError('invalid_pagination', 'The parameter after is not a token of this list.');
  }
  const people = await listPeople(store.read, { after, email, limit: limit + 1 });
  const last = people.length > limit ? people[limit - 1] : undefined;
  return {
    people: people.slice(0, limit).map((person) => personBody(person, store)),
    ...(last ? { next_page_token: last.id } : {}),
  };
});

export const operatorCreatePerson: Operation<'operatorCreatePerson'> = (deps, request) => {
  const { name, staff_keys: keys = [] } = request.body;
  const email = foldEmail(request.body.email);
  return runCommand(deps.store, request, {
    operation: 'operatorCreatePerson',
    meaning: [email, name ?? '', [...keys].sort()],
    about: { target: email, details: keys.length > 0 ? `staff keys ${keys.join(', ')}` : '' },
    authorize: requireOperator,
    async apply(tx) {
      const { userId, created } = await findOrCreatePerson(tx, { email, displayName: name });
      if (!created) throw invalidState(`There is an account for ${email} already.`);
      await updateStaffKeys(tx, { userId, keys });
      return { result: await personReply(tx, userId, deps.store), about: { subjectUserId: userId } };
    },
  });
};

export const operatorSetStaffKeys: Operation<'operatorSetStaffKeys'> = (deps, request) => {
  const keys = [...new Set(request.body.staff_keys)].sort();
  const what = {
    operation: 'operatorSetStaffKeys',
    meaning: keys,
    details: `staff keys → ${keys.join(', ') || 'none'}`,
  };
  return changePerson(deps, request, what, async (tx, userId) => {
    await requireActive(tx, userId);
    await updateStaffKeys(tx, { userId, keys });
  });
};

/** Sets a person's password at the embedded issuer; what was signed in to with the one before is over. */
export const operatorSetPassword: Operation<'operatorSetPassword'> = async (deps, request) => {
  const { store, hashPassword } = deps;
  const { password } = request.body;
  // Hashing is work, so it is done only for those who may; the command refuses the others.
  const mayDo = holdsStaffKey(await listStaffKeys(store.read, request.caller.userId), 'staff.operate');
  const user = mayDo ? await findPerson(store.read, request.path.userID) : undefined;
  const hash = user && (await hashPassword?.(password, user));
  const what = {
    operation: 'operatorSetPassword',
    meaning: [mayDo ? await fingerprint(password, request.command.idempotencyKey) : ''],
    details: 'a new password',
  };
  return changePerson(deps, request, what, async (tx, userId) => {
    if (hash === undefined) {
      throw invalidState('People sign in with another issuer here; it keeps the passwords.');
    }
    await requireActive(tx, userId);
    await setPassword(tx, { userId, hash });
  });
};

export const operatorDeactivatePerson: Operation<'operatorDeactivatePerson'> = (deps, request) => {
  const what = { operation: 'operatorDeactivatePerson', meaning: [], details: 'left' };
  return changePerson(deps, request, what, async (tx, userId) => {
    await deactivate(tx, userId);
  });
};

export const operatorSetPersonEmail: Operation<'operatorSetPersonEmail'> = (deps, request) => {
  const email = foldEmail(request.body.email);
  const what = { operation: 'operatorSetPersonEmail', meaning: [email], details: `→ ${email}` };
  return changePerson(deps, request, what, async (tx, userId) => {
    const before = await requireActive(tx, userId);
    await updateEmail(tx, { userId, email });
    return { details: `${before.email} → ${email}` };
  });
};

const longestExemptionMs = 366 * dayMs;

/** Until when a person's access does not lapse without a sign-in. Throws `invalid_request` for an end that is over or too far off. */
export const operatorSetSignInExemption: Operation<'operatorSetSignInExemption'> = (deps, request) => {
  const until = request.body.until === null ? null : toTime(fromTime(request.body.until));
  const what = {
    operation: 'operatorSetSignInExemption',
    meaning: [until ?? ''],
    details: until === null ? 'ended' : `until ${until}`,
  };
  return changePerson(deps, request, what, async (tx, userId) => {
    await requireActive(tx, userId);
    const ms = until === null ? undefined : fromTime(until) - tx.now;
    if (ms !== undefined && (ms <= 0 || ms > longestExemptionMs))
      throw invalidRequest('until must be in the future, and at most a year from now.');
    await updateSignInExemption(tx, { userId, until });
  });
};

/** Replaces what names a person who was deactivated; the audit trail follows in the background. */
export const operatorErasePerson: Operation<'operatorErasePerson'> = async (deps, request) => {
  const what = { operation: 'operatorErasePerson', meaning: [], details: 'what names the person' };
  const reply = await changePerson(deps, request, what, async (tx, userId) => {
    const { erasedAt } = await requirePerson(tx.db, userId);
    await erasePerson(tx, userId, deps.audit.markIdentity);
    // After the first erasure the names are gone, so the reason given now cannot be searched for them: it is left out.
    return erasedAt === null ? undefined : { reason: '', details: 'was erased before' };
  });
  deps.audit.eraseNames();
  return reply;
};

export const operatorReactivatePerson: Operation<'operatorReactivatePerson'> = (deps, request) => {
  const what = { operation: 'operatorReactivatePerson', meaning: [], details: 'may sign in again' };
  return changePerson(deps, request, what, async (tx, userId) => {
    await requireNotErased(tx, userId);
    await updateLifecycle(tx, { userId, state: 'active' });
  });
};

/** Tells two passwords apart on a replay without keeping anything that is quick to guess from. */
async function fingerprint(password: string, salt: string): Promise<string> {
  const key = (await promisify(scrypt)(password, `replay ${salt}`, 32)) as Buffer;
  return key.toString('base64');
}

/** Ends sign-in, memberships, grants, staff keys and SSH keys. Throws `invalid_state` for the last owner of an organization. */
async function deactivate(tx: Tx, userId: string): Promise<void> {
  for (const { organizationId } of await listMembershipsOf(tx.db, userId)) {
    await removeMembership(tx, { organizationId, userId });
  }
  for (const { id } of await listLiveGrants(tx.db, userId, tx.now)) await revokeGrant(tx, id);
  for (const key of await listSshKeys(tx.db, userId)) await revokeSshKey(tx, { userId, keyId: key.id });
  await updateStaffKeys(tx, { userId, keys: [] });
  await updateLifecycle(tx, { userId, state: 'deactivated' });
}

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
    const change = { change: 'remove', email, user_id: userId } as const;
    const planned = await planOfPerson(tx, { userId, sessions }, () => deactivate(tx, userId));
    return { changes: [{ ...change, ...planned.outcome }], clusters: planned.clusters };
  });
};

/** People with an account and their identities at issuers, for operators. */
import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { dayMs } from '../../../domain/access/lapse.ts';
import { DomainError, invalidRequest, invalidState } from '../../../domain/error.ts';
import { isId } from '../../../domain/id.ts';
import { foldEmail, holdsStaffKey } from '../../../domain/people/person.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { erasePerson } from '../../../store/audit/erasure.ts';
import { type Reader, type Tx, tryOut } from '../../../store/engine/index.ts';
import { fromTime, toTime } from '../../../store/engine/time.ts';
import { listLiveGrants, revokeGrant } from '../../../store/organizations/grants.ts';
import { removeMembership } from '../../../store/organizations/membership-changes.ts';
import { listMembershipsOf } from '../../../store/organizations/memberships.ts';
import {
  endSignIns,
  type Identity,
  listIdentities,
  listUnboundIdentities,
  setPassword,
  unbindIdentity,
  updateIdentityAt,
} from '../../../store/people/identities.ts';
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
import { createPasswordLink, deleteSecondFactor } from '../../../store/people/second-factors.ts';
import { listSshKeys, revokeSshKey } from '../../../store/people/ssh-keys.ts';
import { planOfPerson, takePlan } from '../member-plan.ts';
import type { Operation } from '../operation.ts';
import {
  changesPerson,
  operatorWrites,
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

export const operatorCreatePerson = operatorWrites('operatorCreatePerson', ({ store }, { body }) => {
  const { name, staff_keys: keys = [] } = body;
  const email = foldEmail(body.email);
  return {
    meaning: [email, name ?? '', [...keys].sort()],
    about: { target: email, details: keys.length > 0 ? `staff keys ${keys.join(', ')}` : '' },
    async apply(tx) {
      const { userId, created } = await findOrCreatePerson(tx, { email, displayName: name });
      if (!created) throw invalidState(`There is an account for ${email} already.`);
      await updateStaffKeys(tx, { userId, keys });
      return { result: await personReply(tx, userId, store), about: { subjectUserId: userId } };
    },
  };
});

export const operatorSetStaffKeys = changesPerson('operatorSetStaffKeys', (_, { body }) => {
  const keys = [...new Set(body.staff_keys)].sort();
  return {
    meaning: keys,
    details: `staff keys → ${keys.join(', ') || 'none'}`,
    async change(tx, userId) {
      await requireActive(tx, userId);
      await updateStaffKeys(tx, { userId, keys });
    },
  };
});

const otherIssuer = 'People sign in with another issuer here; it keeps the passwords.';

/** Sets a person's password at the embedded issuer, which ends the sign-ins with the former one. */
export const operatorSetPassword = changesPerson('operatorSetPassword', async (deps, request) => {
  const { store, hashPassword } = deps;
  const { password } = request.body;
  // Hashing is expensive, so it is done only for operators; the command refuses everyone else.
  const mayDo = holdsStaffKey(await listStaffKeys(store.read, request.caller.userId), 'staff.operate');
  const user = mayDo ? await findPerson(store.read, request.path.userID) : undefined;
  const hash = user && (await hashPassword?.(password, user));
  return {
    meaning: [mayDo ? await fingerprint(password, request.command.idempotencyKey) : ''],
    details: 'a new password',
    async change(tx, userId) {
      if (hash === undefined) throw invalidState(otherIssuer);
      await requireActive(tx, userId);
      await setPassword(tx, { userId, hash });
    },
  };
});

export const operatorDeactivatePerson = changesPerson('operatorDeactivatePerson', () => ({
  details: 'left',
  change: deactivate,
}));

export const operatorSetPersonEmail = changesPerson('operatorSetPersonEmail', (_, { body }) => {
  const email = foldEmail(body.email);
  return {
    meaning: [email],
    details: `→ ${email}`,
    async change(tx, userId) {
      const before = await requireActive(tx, userId);
      await updateEmail(tx, { userId, email });
      return { details: `${before.email} → ${email}` };
    },
  };
});

const longestExemptionMs = 366 * dayMs;

/** Exempts a person from lapsing until a time. Throws `invalid_request` for a time in the past or too far ahead. */
export const operatorSetSignInExemption = changesPerson('operatorSetSignInExemption', (_, { body }) => {
  const until = body.until === null ? null : toTime(fromTime(body.until));
  return {
    meaning: [until ?? ''],
    details: until === null ? 'ended' : `until ${until}`,
    async change(tx, userId) {
      await requireActive(tx, userId);
      const ms = until === null ? undefined : fromTime(until) - tx.now;
      if (ms !== undefined && (ms <= 0 || ms > longestExemptionMs))
        throw invalidRequest('until must be in the future, and at most a year from now.');
      await updateSignInExemption(tx, { userId, until });
    },
  };
});

const erase = changesPerson('operatorErasePerson', ({ audit }) => ({
  details: 'what names the person',
  async change(tx, userId) {
    const { erasedAt } = await requirePerson(tx.db, userId);
    await erasePerson(tx, userId, audit.markIdentity);
    // After the first erasure the names are gone, so a new reason cannot be searched for them and is left out.
    return erasedAt === null ? undefined : { reason: '', details: 'was erased before' };
  },
}));

/** Erases a deactivated person's names; the audit trail is redacted in the background. */
export const operatorErasePerson: Operation<'operatorErasePerson'> = async (deps, request) => {
  const reply = await erase(deps, request);
  deps.audit.eraseNames();
  return reply;
};

export const operatorReactivatePerson = changesPerson('operatorReactivatePerson', () => ({
  details: 'may sign in again',
  async change(tx, userId) {
    await requireNotErased(tx, userId);
    await updateLifecycle(tx, { userId, state: 'active' });
  },
}));

/** Distinguishes passwords on a replay; scrypt, so that the stored digest is slow to guess from. */
async function fingerprint(password: string, salt: string): Promise<string> {
  const key = (await promisify(scrypt)(password, `replay ${salt}`, 32)) as Buffer;
  return key.toString('base64');
}

/** Ends sign-ins, memberships, grants, staff keys and SSH keys. Throws `invalid_state` for the last owner of an organization. */
async function deactivate(tx: Tx, userId: string): Promise<undefined> {
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

export const operatorListIdentities = staffReads<'operatorListIdentities'>(async ({ store }, { path }) => {
  await requirePerson(store.read, path.userID);
  return identitiesBody(store.read, path.userID);
});

/** Replaces a person's identity at an issuer by a subject; without one, the next sign-in with the verified address becomes it. */
export const operatorRebindIdentity = operatorWrites('operatorRebindIdentity', (_, { path, body }) => {
  const { userID: userId } = path;
  const { issuer, subject } = body;
  return {
    meaning: [userId, issuer, subject ?? ''],
    about: { target: userId, subjectUserId: userId, details: `at ${issuer}` },
    async apply(tx) {
      await requireNotErased(tx, userId);
      const before = await updateIdentityAt(tx, { userId, issuer, subject });
      const change = `${before.join(', ') || 'none'} → ${subject ?? 'whoever signs in with the verified address next'}`;
      return {
        result: await identitiesBody(tx.db, userId),
        about: { details: `${change}, at ${issuer}` },
      };
    },
  };
});

/** Removes an identity from its account; the subject is never bound to an account by its address again. */
export const operatorUnbindIdentity = operatorWrites(
  'operatorUnbindIdentity',
  (_, { caller, path, body }) => {
    const { userID: userId } = path;
    const { issuer, subject } = body;
    return {
      meaning: [userId, issuer, subject],
      about: { target: userId, subjectUserId: userId, details: `${subject}, at ${issuer}` },
      async apply(tx) {
        await requirePerson(tx.db, userId);
        if (userId === caller.userId) {
          throw invalidState(
            'This is how you sign in yourself, and you could not undo it. Ask another operator.',
          );
        }
        await unbindIdentity(tx, { userId, issuer, subject });
        return { result: await identitiesBody(tx.db, userId) };
      },
    };
  },
);

async function identitiesBody(db: Reader, userId: string) {
  const toWire = ({ createdAt, ...identity }: Identity) => ({ ...identity, created_at: createdAt });
  return {
    identities: (await listIdentities(db, userId)).map(toWire),
    unbound: (await listUnboundIdentities(db, userId)).map(toWire),
  };
}

const linkMs = 24 * 3_600_000;

/** Makes a link for setting a password, valid once and for a day. The secret is not stored: a replay derives it again. */
export const operatorCreatePasswordLink: Operation<'operatorCreatePasswordLink'> = async (deps, request) => {
  const userId = request.path.userID;
  const { idempotencyKey } = request.command;
  const link = deps.passwordLink?.(userId, `${request.caller.userId} ${idempotencyKey}`);
  const { result, ...reply } = await runCommand(deps.store, request, {
    operation: 'operatorCreatePasswordLink',
    meaning: [userId],
    about: { target: userId, subjectUserId: userId },
    authorize: requireOperator,
    async apply(tx) {
      if (!link) throw invalidState(otherIssuer);
      await requireActive(tx, userId);
      const until = toTime(tx.now + linkMs);
      await createPasswordLink(tx, { userId, token: link.token, until });
      return { result: { url: '', expires_at: until } };
    },
  });
  return { ...reply, result: { ...result, url: link?.url ?? '' } };
};

export const operatorResetSecondFactor = changesPerson('operatorResetSecondFactor', ({ passwordLink }) => ({
  details: '',
  async change(tx, userId) {
    if (passwordLink === undefined) throw invalidState(otherIssuer);
    const had = await deleteSecondFactor(tx, userId);
    // A browser may be signed in with the lost factor.
    await endSignIns(tx, userId);
    return had ? undefined : { details: 'there was none' };
  },
}));

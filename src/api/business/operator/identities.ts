/** With which identities people sign in, and making an account another identity's. */
import { invalidState } from '../../../domain/error.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { toTime } from '../../../store/engine/time.ts';
import {
  endSignIns,
  type Identity,
  listIdentities,
  listUnboundIdentities,
  unbindIdentity,
  updateIdentityAt,
} from '../../../store/people/identities.ts';
import { createPasswordLink, deleteSecondFactor } from '../../../store/people/second-factors.ts';
import type { Operation } from '../operation.ts';
import {
  changePerson,
  requireActive,
  requireNotErased,
  requireOperator,
  requirePerson,
  staffReads,
} from './about.ts';

export const operatorListIdentities = staffReads<'operatorListIdentities'>(async ({ store }, { path }) => {
  await requirePerson(store.read, path.userID);
  return identitiesBody(store.read, path.userID);
});

/** Replaces a person's identity at an issuer by a subject; without one, by the next sign-in with the verified address. */
export const operatorRebindIdentity: Operation<'operatorRebindIdentity'> = (deps, request) => {
  const userId = request.path.userID;
  const { issuer, subject } = request.body;
  return runCommand(deps.store, request, {
    operation: 'operatorRebindIdentity',
    meaning: [userId, issuer, subject ?? ''],
    about: { target: userId, subjectUserId: userId, details: `at ${issuer}` },
    authorize: requireOperator,
    async apply(tx) {
      await requireNotErased(tx, userId);
      const before = await updateIdentityAt(tx, { userId, issuer, subject });
      const change = `${before.join(', ') || 'none'} → ${subject ?? 'whoever signs in with the verified address next'}`;
      return {
        result: await identitiesBody(tx.db, userId),
        about: { details: `${change}, at ${issuer}` },
      };
    },
  });
};

/** Takes an identity from an account; its subject is not bound to any account again by its address. */
export const operatorUnbindIdentity: Operation<'operatorUnbindIdentity'> = (deps, request) => {
  const userId = request.path.userID;
  const { issuer, subject } = request.body;
  return runCommand(deps.store, request, {
    operation: 'operatorUnbindIdentity',
    meaning: [userId, issuer, subject],
    about: { target: userId, subjectUserId: userId, details: `${subject}, at ${issuer}` },
    authorize: requireOperator,
    async apply(tx) {
      await requirePerson(tx.db, userId);
      if (userId === request.caller.userId) {
        throw invalidState(
          'This is how you sign in yourself, and you could not undo it. Ask another operator.',
        );
      }
      await unbindIdentity(tx, { userId, issuer, subject });
      return { result: await identitiesBody(tx.db, userId) };
    },
  });
};

async function identitiesBody(db: Reader, userId: string) {
  const toWire = ({ createdAt, ...identity }: Identity) => ({ ...identity, created_at: createdAt });
  return {
    identities: (await listIdentities(db, userId)).map(toWire),
    unbound: (await listUnboundIdentities(db, userId)).map(toWire),
  };
}

const linkMs = 24 * 3_600_000;
const otherIssuer = 'People sign in with another issuer here; it keeps the passwords.';

/** Makes a link with which a person sets a password, once and within a day. Its secret is in no record: a replay makes it again. */
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

export const operatorResetSecondFactor: Operation<'operatorResetSecondFactor'> = (deps, request) => {
  const what = { operation: 'operatorResetSecondFactor', meaning: [], details: '' };
  return changePerson(deps, request, what, async (tx, userId) => {
    if (deps.passwordLink === undefined) throw invalidState(otherIssuer);
    const had = await deleteSecondFactor(tx, userId);
    // A browser may be signed in with the lost one.
    await endSignIns(tx, userId);
    return had ? undefined : { details: 'there was none' };
  });
};

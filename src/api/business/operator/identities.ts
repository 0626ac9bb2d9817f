/** With which identities people sign in, and making an account another identity's. */
import { invalidState } from '../../../domain/error.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import type { Reader } from '../../../store/engine/index.ts';
import {
  type Identity,
  listIdentities,
  listUnboundIdentities,
  unbindIdentity,
  updateIdentityAt,
} from '../../../store/people/identities.ts';
import type { Operation } from '../operation.ts';
import { requireNotErased, requirePerson } from './about.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** A person's identities, oldest first. */
export const operatorListIdentities: Operation<'operatorListIdentities'> = async (
  { store },
  { caller, path },
) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  await requirePerson(store.read, path.userID);
  return identitiesBody(store.read, path.userID);
};

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

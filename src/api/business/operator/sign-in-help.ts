/** What operators do for people who cannot sign in at the embedded issuer: a link to set a password, another second factor. */
import { invalidState } from '../../../domain/error.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { toTime } from '../../../store/engine/time.ts';
import { endSignIns } from '../../../store/people/identities.ts';
import { createPasswordLink, deleteSecondFactor } from '../../../store/people/second-factors.ts';
import type { Operation } from '../operation.ts';
import { changePerson, requireActive } from './person-change.ts';
import { requireOperator } from './staff.ts';

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

/** Takes a person's second factor, where there is one. */
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

/** The tokens that identity providers show at `/scim/v2`. */
import { createHash, randomBytes } from 'node:crypto';
import { invalidState } from '../../../domain/error.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { addScimToken, deleteScimTokens, listScimTokens } from '../../../store/people/scim.ts';
import type { Operation } from '../operation.ts';
import { requireOperator } from './staff.ts';

/** So that one can be put in the place of another without a gap. */
const mostTokens = 2;

/** Makes a token, which only this answer has: it is kept as its hash. */
export const operatorCreateScimToken: Operation<'operatorCreateScimToken'> = async (deps, request) => {
  const { replace = false } = request.body;
  const token = `scim_${randomBytes(32).toString('base64url')}`;
  const reply = await runCommand(deps.store, request, {
    operation: 'operatorCreateScimToken',
    meaning: [replace],
    about: { target: 'scim', details: replace ? 'in the place of all others' : '' },
    authorize: requireOperator,
    async apply(tx) {
      if (replace) await deleteScimTokens(tx);
      const valid = (await listScimTokens(tx.db)).length + 1;
      if (valid > mostTokens) {
        throw invalidState(
          `There are ${mostTokens} tokens already. Make one that replaces them, or revoke them.`,
        );
      }
      await addScimToken(tx, createHash('sha256').update(token).digest('hex'));
      return { result: { valid } };
    },
  });
  if (reply.replayed) throw invalidState('This token was made before, and is shown once. Make another one.');
  return { ...reply, result: { ...reply.result, token } };
};

/** Makes every token worthless. */
export const operatorRevokeScimTokens: Operation<'operatorRevokeScimTokens'> = (deps, request) =>
  runCommand(deps.store, request, {
    operation: 'operatorRevokeScimTokens',
    meaning: [],
    about: { target: 'scim', details: '' },
    authorize: requireOperator,
    async apply(tx) {
      await deleteScimTokens(tx);
      return { result: { valid: 0 } };
    },
  });

/**
 * Email and password to person, with wrong tries slowed down on three counts, so that neither one account nor many
 * can be guessed at, and nobody can lock somebody else out:
 *
 * - account and address: five tries are free, then 1, 2, 4 … seconds, at most 15 minutes;
 * - account, from everywhere: softer (20 free, at most 30 seconds), against guessing from many addresses, and not for
 *   an address that this person has signed in from;
 * - address, whichever account: softer too (50 free, at most 30 seconds): a whole site can stand behind one address.
 */

import { createHash } from 'node:crypto';
import { foldEmail } from '../../domain/email.ts';
import { sourceNetwork } from '../../source-address.ts';
import type { Reader } from '../../store/index.ts';
import { findPassword, type PasswordAccount } from '../../store/passwords.ts';
import { verifyPassword } from '../password.ts';
import { createBackoff } from './backoff.ts';

export type SignInResult =
  | { outcome: 'signed_in'; account: PasswordAccount }
  | { outcome: 'wrong' }
  | { outcome: 'wait'; seconds: number };

export type SignIn = (attempt: { email: string; password: string; address: string }) => Promise<SignInResult>;

const hour = 3_600_000;
const mostKnown = 10_000;

/** The attempts of one issuer. Throws `service_unavailable` when too many passwords are being checked already. */
export function createSignIn(reader: Reader, now: () => number): SignIn {
  const pairs = createBackoff({ free: 5, firstMs: 1000, mostMs: hour / 4, forgetMs: hour }, now);
  const accounts = createBackoff({ free: 20, firstMs: 1000, mostMs: 30_000, forgetMs: hour }, now);
  const addresses = createBackoff({ free: 50, firstMs: 1000, mostMs: 30_000, forgetMs: hour }, now);
  const known = new Set<string>();

  return async ({ email, password, address }) => {
    // Hashed to one length: what is typed into the field is the caller's choice.
    const account = createHash('sha256').update(foldEmail(email.trim())).digest('base64url');
    const from = sourceNetwork(address);
    const pair = `${account} ${from}`;
    const waitMs = Math.max(
      pairs.waitMs(pair),
      known.has(pair) ? 0 : accounts.waitMs(account),
      addresses.waitMs(from),
    );
    if (waitMs > 0) return { outcome: 'wait', seconds: Math.ceil(waitMs / 1000) };

    // Counted before the password is looked at: tries made at the same time count too.
    pairs.failed(pair);
    accounts.failed(account);
    addresses.failed(from);
    const found = await findPassword(reader, email);
    const right = await verifyPassword(password, found?.passwordHash).catch((error) => {
      for (const [backoff, key] of [
        [pairs, pair],
        [accounts, account],
        [addresses, from],
      ] as const) {
        backoff.undo(key);
      }
      throw error;
    });
    if (!found || !right) return { outcome: 'wrong' };

    pairs.clear(pair);
    accounts.undo(account);
    addresses.undo(from);
    known.add(pair);
    for (const oldest of known) {
      if (known.size <= mostKnown) break;
      known.delete(oldest);
    }
    return { outcome: 'signed_in', account: found };
  };
}

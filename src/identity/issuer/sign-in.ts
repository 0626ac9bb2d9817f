/**
 * Email and password to person, with wrong tries slowed down on three counts, so that neither one account nor many
 * can be guessed at, and nobody is locked out, by others or by themselves:
 *
 * - account and address: five tries are free, then 1, 2, 4 … seconds, at most a minute;
 * - account, from everywhere: softer (20 free, at most 30 seconds), against guessing from many addresses, and not for
 *   an address that this person has signed in from;
 * - address, whichever account: a rate (50 at once, then one a second): a whole site can stand behind one address.
 *
 * None of these hold back a browser that the person has signed in with before: its own wrong tries are counted apart
 * (20 at once, then one in half a minute), and only beyond those it is treated as any other.
 */
import { createHash } from 'node:crypto';
import { foldEmail } from '../../domain/email.ts';
import { createBackOff } from '../../lib/back-off.ts';
import { createRateLimit } from '../../lib/rate-limit.ts';
import { sourceNetwork } from '../../lib/source-address.ts';
import type { Reader } from '../../store/index.ts';
import { findPassword, type PasswordAccount } from '../../store/passwords.ts';
import { verifyPassword } from '../password.ts';
import type { KnownBrowser } from './known-browser.ts';

export type SignInResult =
  | { outcome: 'signed_in'; account: PasswordAccount }
  | { outcome: 'wrong' }
  | { outcome: 'wait'; seconds: number };

export interface SignInAttempt {
  email: string;
  password: string;
  address: string;
  /** The browser, where somebody has signed in with it before. */
  browser?: KnownBrowser | undefined;
}

export type SignIn = (attempt: SignInAttempt) => Promise<SignInResult>;

const hour = 3_600_000;
const mostKnown = 10_000;

/** The attempts of one issuer. Throws `service_unavailable` when too many passwords are being checked already. */
export function createSignIn(reader: Reader, uptime: () => number): SignIn {
  const pairs = createBackOff({ free: 5, firstMs: 1000, mostMs: 60_000, forgetMs: hour }, uptime);
  const accounts = createBackOff({ free: 20, firstMs: 1000, mostMs: 30_000, forgetMs: hour }, uptime);
  const addresses = createRateLimit({ burst: 50, everyMs: 1000 }, uptime);
  const browsers = createRateLimit({ burst: 20, everyMs: 30_000 }, uptime);
  const known = new Set<string>();

  /** Counts a try before its password is checked, so that concurrent tries count too; or returns how long to wait, in ms. */
  function admit(account: string, from: string): number | { undo(): void; succeeded(): void } {
    const pair = `${account} ${from}`;
    const accountWait = known.has(pair) ? 0 : accounts.waitMs(account);
    const waitMs = Math.max(pairs.waitMs(pair), accountWait, addresses.waitMs(from));
    if (waitMs > 0) return waitMs;
    pairs.failed(pair);
    accounts.failed(account);
    addresses.use(from);
    const undo = () => {
      pairs.undo(pair);
      accounts.undo(account);
      addresses.undo(from);
    };
    return {
      undo,
      succeeded() {
        undo();
        pairs.clear(pair);
        known.add(pair);
        for (const oldest of known) {
          if (known.size <= mostKnown) break;
          known.delete(oldest);
        }
      },
    };
  }

  function admitKnown(browser: KnownBrowser, userId: string) {
    const key = `${browser.id} ${userId}`;
    if (browsers.waitMs(key) > 0) return undefined;
    browsers.use(key);
    const undo = () => browsers.undo(key);
    return { undo, succeeded: undo };
  }

  return async ({ email, password, address, browser }) => {
    const found = await findPassword(reader, email);
    const own = found && browser?.userIds.includes(found.userId) && admitKnown(browser, found.userId);
    // Hashed to one length: what is typed into the field is the caller's choice.
    const account = createHash('sha256').update(foldEmail(email.trim())).digest('base64url');
    const admitted = own || admit(account, sourceNetwork(address));
    if (typeof admitted === 'number') return { outcome: 'wait', seconds: Math.ceil(admitted / 1000) };
    const right = await verifyPassword(password, found?.passwordHash).catch((error) => {
      admitted.undo();
      throw error;
    });
    if (!found || !right) return { outcome: 'wrong' };
    admitted.succeeded();
    return { outcome: 'signed_in', account: found };
  };
}

/**
 * Checks email and password. Three limits slow guesses down, so that an attacker can guess at neither one account nor many.
 * No account is locked; while others guess at one, a new browser at an address with a recent failure has to wait as well:
 *
 * - account and address: five attempts are free, then 1, 2, 4 … seconds of back-off, at most a minute;
 * - account, all addresses: a softer back-off (20 free, at most 30 seconds), against guesses from many addresses; not for
 *   an address that this person has signed in from, and not for one attempt from any other without a recent failure;
 * - address, all accounts: a rate limit (50 at once, then one a second): a whole site can share one address.
 *
 * None of these delays a browser that the person has signed in with before: it has a limit of its own for wrong passwords
 * (20 at once, then one in half a minute), and only beyond that the others apply. In the queue for password checks it comes
 * first; the others take turns by address (password.ts).
 */
import { createHash } from 'node:crypto';
import { foldEmail } from '../../../domain/people/person.ts';
import type { Limit, Limits } from '../../../lib/limits.ts';
import { sourceNetwork } from '../../../lib/source-address.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { findPassword, type PasswordAccount } from '../../../store/people/identities.ts';
import { verifyPassword } from '../password.ts';
import type { KnownBrowser } from './browser.ts';

type SignInResult =
  | { outcome: 'signed_in'; account: PasswordAccount }
  | { outcome: 'wrong' }
  | { outcome: 'wait'; seconds: number };

interface SignInAttempt {
  email: string;
  password: string;
  address: string;
  /** The browser, if a person has signed in with it before. */
  browser?: KnownBrowser | undefined;
}

export type SignIn = ReturnType<typeof createSignIn>;

const hour = 3_600_000;

const pairs: Limit = {
  name: 'sign-in from address',
  backOff: { free: 5, firstMs: 1000, mostMs: 60_000, forgetMs: hour },
};
const accounts: Limit = {
  name: 'sign-in to account',
  backOff: { free: 20, firstMs: 1000, mostMs: 30_000, forgetMs: hour },
};
const addresses: Limit = { name: 'sign-ins of address', rate: { burst: 50, everyMs: 1000 } };
/** Not a limit, but the record of addresses with a recent failure. It makes guesses beyond the account's limit cost an address each. */
const failed: Limit = { name: 'failed sign-in of address', rate: { burst: 1, everyMs: 10 * 60_000 } };
const browsers: Limit = { name: 'sign-in with browser', rate: { burst: 20, everyMs: 30_000 } };
/** Not a limit, but the record of addresses from which a person has signed in recently, until its one use is undone. */
const known: Limit = { name: 'signed in from address', rate: { burst: 1, everyMs: 90 * 24 * hour } };

interface Admitted {
  /** Takes the attempt back: no password was checked. */
  undo(): Promise<void>;
  succeeded(): Promise<void>;
}

/** The sign-in attempts of one issuer. Throws `service_unavailable` while too many passwords are being checked. */
export function createSignIn(reader: Reader, limits: Limits) {
  return async ({ email, password, address, browser }: SignInAttempt): Promise<SignInResult> => {
    const found = await findPassword(reader, email);
    const own =
      found && browser?.userIds.includes(found.userId) && (await admitKnown(limits, browser, found.userId));
    // Hashed to a fixed length, since the caller chooses the length of the field.
    const account = createHash('sha256').update(foldEmail(email.trim())).digest('base64url');
    const from = sourceNetwork(address);
    const admitted = own || (await admit(limits, account, from));
    if (typeof admitted === 'number') return { outcome: 'wait', seconds: Math.ceil(admitted / 1000) };
    const asker = own ? { source: found.userId, isKnown: true } : { source: from, isKnown: false };
    const right = await verifyPassword(password, found?.passwordHash, asker).catch(async (error) => {
      await admitted.undo();
      throw error;
    });
    if (!found || !right) return { outcome: 'wrong' };
    await admitted.succeeded();
    return { outcome: 'signed_in', account: found };
  };
}

/** Counts an attempt before its password is checked, so that concurrent attempts count too; or returns the wait in ms. */
async function admit(limits: Limits, account: string, from: string): Promise<number | Admitted> {
  const pair = `${account} ${from}`;
  const counted = {
    pair: { limit: pairs, key: pair },
    account: { limit: accounts, key: account },
    address: { limit: addresses, key: from },
    failed: { limit: failed, key: from },
    known: { limit: known, key: pair },
  };
  const waitMs = await limits.change(counted, ({ pair, account, address, failed, known }) => {
    const accountWait = known.waitMs() > 0 ? 0 : Math.min(account.waitMs(), failed.waitMs());
    const wait = Math.max(pair.waitMs(), accountWait, address.waitMs());
    if (wait === 0) for (const count of [pair, account, address, failed]) count.use();
    return wait;
  });
  if (waitMs > 0) return waitMs;
  return {
    undo: () =>
      limits.change(counted, ({ pair, account, address, failed }) => {
        for (const count of [pair, account, address, failed]) count.undo();
      }),
    succeeded: () =>
      limits.change(counted, ({ pair, account, address, failed, known }) => {
        pair.clear();
        for (const count of [account, address, failed]) count.undo();
        if (known.waitMs() === 0) known.use();
      }),
  };
}

/** Undefined for a browser with too many recent wrong passwords. */
async function admitKnown(
  limits: Limits,
  browser: KnownBrowser,
  userId: string,
): Promise<Admitted | undefined> {
  const counted = { own: { limit: browsers, key: `${browser.id} ${userId}` } };
  const isAdmitted = await limits.change(counted, ({ own }) => {
    if (own.waitMs() > 0) return false;
    own.use();
    return true;
  });
  const undo = () => limits.change(counted, ({ own }) => own.undo());
  return isAdmitted ? { undo, succeeded: undo } : undefined;
}

/**
 * A browser's session: one signed cookie. It contains a nonce that forms are bound to (against cross-site request
 * forgery, before and after the sign-in), and after the sign-in the person, the time, and a digest of the password
 * hash, so that a new password ends every session. Ended sessions are stored until the cookie expires, so that a copy
 * of the cookie is useless too.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { signInMs } from '../../../domain/access/lapse.ts';
import type { Store } from '../../../store/engine/index.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../../store/people/identities.ts';
import { findIssuerRecord, saveIssuerRecord } from '../../../store/people/issuer-records.ts';
import { findLeastSignInHours } from '../../../store/people/people.ts';
import type { SecondFactors } from './account/second-factor.ts';
import { librarySeconds } from './adapter.ts';
import { createCookie, isSame, sign } from './cookie.ts';

/** How long a browser stays signed in: a working day. Every device is still approved one by one. */
const sessionSeconds = 12 * 3600;
const endedModel = 'EndedBrowserSession';

export interface Browser {
  nonce: string;
  userId?: string;
  /** Seconds since 1970. */
  authTime?: number;
  password?: string;
  hasFactor?: boolean;
}

export type Browsers = ReturnType<typeof createBrowsers>;

export function createBrowsers({
  store,
  factors,
  key,
  secure,
  now,
}: {
  store: Store;
  factors: SecondFactors;
  key: string;
  secure: boolean;
  now: () => number;
}) {
  const cookie = createCookie<Browser>({ key, secure, name: 'andromeda-sign-in' });
  const fresh = (): Browser => ({ nonce: randomBytes(24).toString('base64url') });
  return {
    fresh,
    of(req: IncomingMessage): Browser {
      const browser = cookie.read(req) ?? fresh();
      if (browser.authTime === undefined) return browser;
      return now() / 1000 - browser.authTime < sessionSeconds ? browser : fresh();
    },
    /** Starts a session with a new nonce, so that a cookie planted before the sign-in is worthless. */
    signedIn: (account: PasswordAccount, hasFactor: boolean): Browser => ({
      ...fresh(),
      userId: account.userId,
      authTime: Math.floor(now() / 1000),
      password: digest(account),
      hasFactor,
    }),
    findAccount: (browser: Browser) => findAccount({ store, factors }, browser, now()),
    async end({ userId, nonce }: Browser): Promise<void> {
      if (userId === undefined) return;
      await store.write((tx) =>
        saveIssuerRecord(tx, endedModel, nonce, {}, librarySeconds() + sessionSeconds),
      );
    },
    cookie: (browser: Browser) => cookie.write(browser),
    csrf: (browser: Browser) => sign(key, 'form', browser.nonce),
    isOwnForm: (browser: Browser, csrf: string | null) =>
      isSame(csrf ?? '', sign(key, 'form', browser.nonce)),
  };
}

/** The signed-in person; undefined if the sign-in is too old for access or lacks a second factor, so they sign in again. */
async function findAccount(
  { store, factors }: { store: Store; factors: SecondFactors },
  { userId, password = '', nonce, authTime = 0, hasFactor = false }: Browser,
  now: number,
): Promise<PasswordAccount | undefined> {
  if (userId === undefined) return undefined;
  const maxAgeMs = signInMs(store.lapses.policy, await findLeastSignInHours(store.read));
  if (maxAgeMs !== undefined && now - authTime * 1000 >= maxAgeMs) return undefined;
  const account = await findPasswordOfUser(store.read, userId);
  if (!account || !isSame(password, digest(account))) return undefined;
  if (!hasFactor && (await factors.neededBy(userId)) !== 'nothing') return undefined;
  return (await findIssuerRecord(store.read, endedModel, nonce, librarySeconds())) ? undefined : account;
}

/** The authentication methods of the sign-in (RFC 8176). */
export function methodsOf({ hasFactor }: Browser): string[] {
  return hasFactor ? ['pwd', 'mfa'] : ['pwd'];
}

function digest(account: PasswordAccount): string {
  const { passwordHash, passwordGeneration } = account;
  return createHash('sha256')
    .update(`${passwordHash} ${passwordGeneration}`)
    .digest('base64url')
    .slice(0, 22);
}

const lifetimeSeconds = 180 * 24 * 3600;
/** A shared browser has several people's sign-ins; cookies are limited in size. */
const mostPeople = 8;

export interface KnownBrowser {
  /** The key of the browser's own limit for wrong passwords. */
  id: string;
  userIds: readonly string[];
}

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>;

/**
 * Remembers the people who signed in with a browser before, in a signed cookie: their attempts are then distinguished
 * from guesses by others. It grants no sign-in, and outlives signing out.
 */
export function createKnownBrowsers(options: { key: string; secure: boolean }) {
  const cookie = createCookie<KnownBrowser>({ ...options, name: 'andromeda-known', maxAge: lifetimeSeconds });
  return {
    of: (req: IncomingMessage) => cookie.read(req),
    cookie(browser: KnownBrowser | undefined, userId: string): string {
      const others = (browser?.userIds ?? []).filter((one) => one !== userId);
      const id = browser?.id ?? randomBytes(18).toString('base64url');
      return cookie.write({ id, userIds: [userId, ...others].slice(0, mostPeople) });
    },
  };
}

/**
 * A browser and who is signed in with it: one signed cookie. It carries a random number that the forms are bound to
 * (against cross-site request forgery, before and after signing in), and after signing in the person, the time, and a
 * digest of their password hash, so that a new password ends it everywhere. What was signed out of is stored until the
 * cookie's time is over, so that a copy of the cookie is worth nothing either.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Store } from '../../../store/engine/index.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../../store/people/identities.ts';
import { findIssuerRecord, saveIssuerRecord } from '../../../store/people/issuer-records.ts';
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
}

export type Browsers = ReturnType<typeof createBrowsers>;

export function createBrowsers({
  store,
  key,
  secure,
  now,
}: {
  store: Store;
  key: string;
  secure: boolean;
  now: () => number;
}) {
  const cookie = createCookie<Browser>({ key, secure, name: 'andromeda-sign-in' });
  const fresh = (): Browser => ({ nonce: randomBytes(24).toString('base64url') });
  return {
    /** A new one, not signed in. */
    fresh,
    /** The browser of a request; a new one when it brings no cookie of ours. */
    of(req: IncomingMessage): Browser {
      const browser = cookie.read(req) ?? fresh();
      if (browser.authTime === undefined) return browser;
      return now() / 1000 - browser.authTime < sessionSeconds ? browser : fresh();
    },
    /** A browser signed in; with a new number, so that a cookie planted before is worth nothing. */
    signedIn: (account: PasswordAccount): Browser => ({
      ...fresh(),
      userId: account.userId,
      authTime: Math.floor(now() / 1000),
      password: digest(account),
    }),
    /** Who is signed in with it. */
    async findAccount({ userId, password = '', nonce }: Browser): Promise<PasswordAccount | undefined> {
      if (userId === undefined) return undefined;
      const account = await findPasswordOfUser(store.read, userId);
      if (!account || !isSame(password, digest(account))) return undefined;
      return (await findIssuerRecord(store.read, endedModel, nonce, librarySeconds())) ? undefined : account;
    },
    /** Ends what is signed in, for every copy of the cookie. */
    async end({ userId, nonce }: Browser): Promise<void> {
      if (userId === undefined) return;
      await store.write((tx) =>
        saveIssuerRecord(tx, endedModel, nonce, {}, librarySeconds() + sessionSeconds),
      );
    },
    cookie: (browser: Browser) => cookie.write(browser),
    /** The value that a form of this browser carries. */
    csrf: (browser: Browser) => sign(key, 'form', browser.nonce),
    isOwnForm: (browser: Browser, csrf: string | null) =>
      isSame(csrf ?? '', sign(key, 'form', browser.nonce)),
  };
}

function digest(account: PasswordAccount): string {
  return createHash('sha256').update(account.passwordHash).digest('base64url').slice(0, 22);
}

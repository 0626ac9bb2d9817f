/**
 * A browser and who is signed in with it: one signed cookie, nothing stored. It carries a random number that the
 * forms are bound to (against cross-site request forgery, before and after signing in), and after signing in the
 * person, the time, and a digest of their password hash, so that a new password ends it everywhere.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { PasswordAccount } from '../../store/passwords.ts';

/** How long a browser stays signed in: a working day. Every device is still approved one by one. */
const sessionSeconds = 12 * 3600;

export interface Browser {
  nonce: string;
  userId?: string;
  /** Seconds since 1970. */
  authTime?: number;
  password?: string;
}

export interface Browsers {
  /** The browser of a request; a new one when it brings no cookie of ours. */
  of(req: IncomingMessage): Browser;
  /** One that nobody is signed in with. */
  fresh(): Browser;
  /** A browser signed in; with a new number, so that a cookie planted before is worth nothing. */
  signedIn(account: PasswordAccount): Browser;
  isSignedInAs(browser: Browser, account: PasswordAccount): boolean;
  cookie(browser: Browser): string;
  /** The value that a form of this browser carries. */
  csrf(browser: Browser): string;
  isOwnForm(browser: Browser, csrf: string | null): boolean;
}

export function createBrowsers({
  key,
  secure,
  now,
}: {
  key: string;
  secure: boolean;
  now: () => number;
}): Browsers {
  // __Host- keeps other hosts of the domain from setting it (RFC 6265bis, 4.1.3.2); it needs TLS.
  const name = secure ? '__Host-andromeda-sign-in' : 'andromeda-sign-in';
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  const sign = (purpose: string, text: string) =>
    createHmac('sha256', key).update(`${purpose}\n${text}`).digest('base64url');
  const fresh = (): Browser => ({ nonce: randomBytes(24).toString('base64url') });
  return {
    fresh,
    of(req) {
      for (const part of (req.headers.cookie ?? '').split(';')) {
        const [cookieName, value = ''] = part.trim().split('=', 2);
        const [payload = '', mac = ''] = value.split('.');
        if (cookieName !== name || !isSame(mac, sign('browser', payload))) continue;
        const browser: Browser = JSON.parse(Buffer.from(payload, 'base64url').toString());
        if (browser.authTime === undefined) return browser;
        return now() / 1000 - browser.authTime < sessionSeconds ? browser : fresh();
      }
      return fresh();
    },
    signedIn: (account) => ({
      ...fresh(),
      userId: account.userId,
      authTime: Math.floor(now() / 1000),
      password: digest(account),
    }),
    isSignedInAs: (browser, account) =>
      browser.userId === account.userId && isSame(browser.password ?? '', digest(account)),
    cookie(browser) {
      const payload = Buffer.from(JSON.stringify(browser)).toString('base64url');
      return `${name}=${payload}.${sign('browser', payload)}; ${attributes}`;
    },
    csrf: (browser) => sign('form', browser.nonce),
    isOwnForm: (browser, csrf) => isSame(csrf ?? '', sign('form', browser.nonce)),
  };
}

function digest(account: PasswordAccount): string {
  return createHash('sha256').update(account.passwordHash).digest('base64url').slice(0, 22);
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

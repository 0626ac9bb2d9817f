/**
 * A browser that people have signed in with before: a signed cookie that names them, by which their sign-ins are
 * distinguished from the guesses of others. It is no sign-in, and outlives signing out.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createCookie } from './cookie.ts';

const lifetimeSeconds = 180 * 24 * 3600;
/** A shared browser knows several people; a cookie has a size. */
const mostPeople = 8;

export interface KnownBrowser {
  /** By which its own wrong passwords are counted. */
  id: string;
  userIds: readonly string[];
}

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>;

export function createKnownBrowsers(options: { key: string; secure: boolean }) {
  const cookie = createCookie<KnownBrowser>({ ...options, name: 'andromeda-known', maxAge: lifetimeSeconds });
  return {
    /** The people who have signed in with the browser of a request; undefined when there are none. */
    of: (req: IncomingMessage) => cookie.read(req),
    /** The cookie of a browser that this person has signed in with now. */
    cookie(browser: KnownBrowser | undefined, userId: string): string {
      const others = (browser?.userIds ?? []).filter((one) => one !== userId);
      const id = browser?.id ?? randomBytes(18).toString('base64url');
      return cookie.write({ id, userIds: [userId, ...others].slice(0, mostPeople) });
    },
  };
}

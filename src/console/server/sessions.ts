/**
 * Sessions of browsers. A cookie carries 32 random bytes. The database stores their SHA-256, and the tokens, encrypted with
 * a key made from those bytes: a reader of the database gets nothing that the console or an API would accept.
 *
 * A session ends after an hour without use, after twelve hours in any case, when the person ends it, and when their token
 * is refused: they were deactivated, or have a new password.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/error.ts';
import { visibleName } from '../../domain/text.ts';
import type { Logger } from '../../lib/log.ts';
import { seal, unseal } from '../../lib/secrets-key.ts';
import type { Store } from '../../store/engine/index.ts';
import {
  type ConsoleSession,
  claimRenewal,
  createConsoleSession,
  deleteConsoleSession,
  findConsoleSession,
  leaveRenewal,
  resealConsoleSession,
  touchConsoleSession,
} from '../../store/people/console-sessions.ts';
import { recordSignIn } from '../../store/people/people.ts';
import { type IssuerClient, type Tokens, timeoutSeconds } from './issuer-client.ts';

const minute = 60_000;
export const idleMs = 60 * minute;
export const longestMs = 12 * 60 * minute;
/** A session's last use is stored at most this often. */
const touchMs = minute;
const renewMs = 30_000;
/** The lease of a renewal, which takes two requests to the issuer; the other servers poll for its end. */
const renewingMs = 3_000 * timeoutSeconds;
const renewPollMs = 100;
const usualTokenMs = 5 * minute;

/** The tokens of a session, as its row stores them encrypted. */
interface Sealed extends Tokens {
  /** Ms since 1970. */
  expiresAt: number;
}

/** A session with its tokens, and the secret of its cookie, which decrypts them and later ones. */
interface Unsealed {
  session: ConsoleSession;
  secret: Buffer;
  kept: Sealed;
}

export interface OpenSession extends Pick<ConsoleSession, 'id' | 'userId' | 'createdAt' | 'seenAt'> {
  authorization: string;
  secret: Buffer;
}

export interface SessionsOptions {
  store: Store;
  issuer: IssuerClient;
  authenticate(authorization: string): Promise<string>;
  secure: boolean;
  log: Logger;
  now(): number;
}

const signedOut = () => new DomainError('unauthorized', 'You are not signed in, or your session has ended.');

/** A page sends the ID of the person it shows: it must not act as another, who signed in with this browser since. */
const shownPerson = 'x-andromeda-person';
const another = () =>
  new DomainError('unauthorized', 'Another person has signed in with this browser. Reload the page.');

/** Resolves to false where `answer` rejects with `unauthorized`; rethrows any other error. */
export function isAuthorized(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => true,
    (error: unknown) => {
      if (isUnauthorized(error)) return false;
      throw error;
    },
  );
}

function isUnauthorized(error: unknown): error is DomainError {
  return error instanceof DomainError && error.code === 'unauthorized';
}

export function isOver(
  { createdAt, seenAt }: Pick<ConsoleSession, 'createdAt' | 'seenAt'>,
  now: number,
): boolean {
  return now - createdAt >= longestMs || now - seenAt >= idleMs;
}

/** Sessions that were created before `created`, or last used before `seen`, are over. In ms since 1970. */
export function consoleSessionsEnd(now: number): { created: number; seen: number } {
  return { created: now - longestMs, seen: now - idleMs };
}

export type Sessions = ReturnType<typeof createSessions>;

const mostCookies = 8;

export function createSessions(options: SessionsOptions) {
  const { store, secure, now } = options;
  const cookies = createConsoleCookies({
    name: 'andromeda-console',
    secure,
    sameSite: 'Strict',
    maxAge: longestMs / 1000,
  });
  const renew = createRenewal(options);

  return {
    /** Resolves to the person's ID and the Set-Cookie header. Throws `unauthorized` for a token that the APIs would refuse. */
    async create(tokens: Tokens, from: { address: string; program: string }) {
      const { userId, secret } = await createSession(options, tokens, from);
      return { userId, cookie: cookies.write('', secret.toString('base64url')) };
    },
    /** The session of a request. The request counts as a use unless its page is idle. Throws `unauthorized`. */
    async of(request: IncomingMessage): Promise<OpenSession> {
      const held = await findOf(store, cookies, request);
      if (!held || isOver(held.session, now())) throw signedOut();
      const { id, userId, createdAt, seenAt } = held.session;
      const shown = request.headers[shownPerson];
      if (shown !== undefined && shown !== userId) throw another();
      const authorization = await authorized(options, held.session, await renew(held));
      const isUsed = request.headers['x-andromeda-console'] !== 'idle';
      if (isUsed && now() - seenAt >= touchMs)
        await store.write((tx) => touchConsoleSession(tx, id), { flush: false });
      return { id, userId, createdAt, seenAt: isUsed ? now() : seenAt, authorization, secret: held.secret };
    },
    /** Whether the session has not ended and its tokens are accepted. Throws `integration_unavailable` without the issuer. */
    async isOpen({ secret }: Pick<OpenSession, 'secret'>): Promise<boolean> {
      const held = await findHeld(store, secret);
      if (!held || isOver(held.session, now())) return false;
      return isAuthorized(renew(held).then((kept) => authorized(options, held.session, kept)));
    },
    async end(request: IncomingMessage): Promise<{ userId: string; tokens: Tokens } | undefined> {
      const held = await findOf(store, cookies, request);
      if (!held) return undefined;
      await store.write((tx) => deleteConsoleSession(tx, held.session.id));
      return { userId: held.session.userId, tokens: held.kept };
    },
    removal: () => cookies.remove(''),
  };
}

async function createSession(
  { store, issuer, authenticate, now }: SessionsOptions,
  tokens: Tokens,
  { address, program }: { address: string; program: string },
) {
  const userId = await authenticate(`Bearer ${tokens.accessToken}`).catch((error: unknown) => {
    // A refused sign-in leaves no valid token.
    issuer.end(tokens).catch(() => {});
    throw error;
  });
  // The ID token's `auth_time` counts, or now, whatever the access token says.
  await recordSignIn(store, userId, Math.min(tokens.signedInAt ?? now(), now()));
  const secret = randomBytes(32);
  const id = idOf(secret);
  const sealed = seal(keptOf(tokens, now()), secret, id);
  const row = { id, userId, sealed, address, program: visibleName(program.slice(0, 200), 200) };
  await store.write((tx) => createConsoleSession(tx, row));
  return { userId, secret };
}

async function findOf(
  store: Store,
  cookies: ReturnType<typeof createConsoleCookies>,
  request: IncomingMessage,
): Promise<Unsealed | undefined> {
  const own = cookies.read(request).filter(({ label }) => label === '');
  for (const { value } of own.slice(0, mostCookies)) {
    const held = await findHeld(store, Buffer.from(value, 'base64url'));
    if (held) return held;
  }
  return undefined;
}

async function findHeld(store: Store, secret: Buffer): Promise<Unsealed | undefined> {
  if (secret.length !== 32) return undefined;
  const session = await findConsoleSession(store.read, idOf(secret));
  const kept = session && (unseal(session.sealed, secret, session.id) as Sealed | undefined);
  return kept && { session, secret, kept };
}

/** Returns the Authorization header of the tokens once they are accepted. Refused tokens end the session. */
async function authorized(options: SessionsOptions, session: ConsoleSession, kept: Sealed): Promise<string> {
  const authorization = `Bearer ${kept.accessToken}`;
  const userId = await options.authenticate(authorization).catch(async (error: unknown) => {
    if (isUnauthorized(error)) await remove(options, session, error);
    throw error;
  });
  if (userId !== session.userId) throw signedOut();
  return authorization;
}

/** Renews tokens that are about to expire: one refresh for all waiting requests of a session, on all servers. */
function createRenewal(options: SessionsOptions) {
  const { store, now } = options;
  const running = new Map<string, Promise<Sealed>>();

  async function renewNow({ session, secret, kept }: Unsealed): Promise<Sealed> {
    if (kept.refreshToken === undefined) {
      if (kept.expiresAt > now()) return kept;
      throw signedOut();
    }
    for (;;) {
      const isOurs = await store.write((tx) => claimRenewal(tx, session.id, renewingMs));
      // Read after the claim: another server may have used the earlier refresh token since.
      const latest = await findHeld(store, secret);
      const refreshToken = latest?.kept.refreshToken;
      if (!refreshToken) throw signedOut();
      if (latest.kept.expiresAt - now() > renewMs) {
        if (isOurs) await store.write((tx) => leaveRenewal(tx, session.id));
        return latest.kept;
      }
      if (isOurs) return renewWith(options, latest, refreshToken);
      // Another server renews the tokens. An issuer may end the sign-in when a refresh token is used twice.
      await sleep(renewPollMs);
    }
  }

  return async (held: Unsealed): Promise<Sealed> => {
    const { id } = held.session;
    if (held.kept.expiresAt - now() > renewMs) return held.kept;
    const renewing = running.get(id) ?? renewNow(held).finally(() => running.delete(id));
    running.set(id, renewing);
    return renewing;
  };
}

async function renewWith(options: SessionsOptions, held: Unsealed, refreshToken: string): Promise<Sealed> {
  const { store, issuer, now } = options;
  const { session, secret, kept } = held;
  try {
    const tokens = await issuer.refresh(refreshToken, kept.target);
    const renewed = keptOf({ ...tokens, idToken: tokens.idToken ?? kept.idToken }, now());
    const sealed = seal(renewed, secret, session.id);
    if (!(await store.write((tx) => resealConsoleSession(tx, session.id, sealed)))) throw signedOut();
    return renewed;
  } catch (error) {
    if (isUnauthorized(error)) await remove(options, session, error);
    else await store.write((tx) => leaveRenewal(tx, session.id));
    throw error;
  }
}

async function remove(
  { store, log }: SessionsOptions,
  session: ConsoleSession,
  error: unknown,
): Promise<void> {
  log.info('console.session.ended', { userId: session.userId, error });
  await store.write((tx) => deleteConsoleSession(tx, session.id));
}

function keptOf(tokens: Tokens, now: number): Sealed {
  const { expiresIn } = tokens;
  return { ...tokens, expiresAt: now + (expiresIn === undefined ? usualTokenMs : expiresIn * 1000) };
}

function idOf(secret: Buffer): string {
  return createHash('sha256').update(secret).digest('base64url');
}

interface CookieOptions {
  name: string;
  secure: boolean;
  sameSite: 'Strict' | 'Lax';
  maxAge: number;
}

/**
 * Cookies of one kind, distinguished by label; '' means no label. Over TLS a name begins with `__Host-Http-`, so that no other
 * host, script or plain connection can set it (RFC 6265bis, 4.1.3). That needs Secure: over plain HTTP (loopback) it is left out.
 */
export function createConsoleCookies({ name, secure, sameSite, maxAge }: CookieOptions) {
  const start = secure ? `__Host-Http-${name}` : name;
  const end = secure ? '; Secure' : '';
  const line = (label: string, value: string, age: number) => {
    const full = label === '' ? start : `${start}-${label}`;
    return `${full}=${value}; Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${age}${end}`;
  };
  return {
    /** Returns every match: over plain HTTP, another program on this host may have set a cookie of the same name. */
    read: (request: IncomingMessage) =>
      cookiesOf(request)
        .filter((one) => one.name === start || one.name.startsWith(`${start}-`))
        .map((one) => ({ label: one.name.slice(start.length + 1), value: one.value })),
    write: (label: string, value: string) => line(label, value, maxAge),
    remove: (label: string) => line(label, '', 0),
  };
}

function cookiesOf({ headers }: IncomingMessage): { name: string; value: string }[] {
  const parts = (headers.cookie ?? '').split(';').filter((part) => part.includes('='));
  return parts.map((part) => {
    const at = part.indexOf('=');
    return { name: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
  });
}

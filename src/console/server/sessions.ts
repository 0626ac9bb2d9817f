/**
 * Sessions of browsers. A cookie carries 32 random bytes. The database stores their SHA-256, and the tokens, encrypted with
 * a key made from those bytes: a reader of the database gets nothing that the console or an API would accept.
 *
 * A session ends after an hour without use, after twelve hours in any case, when it is ended here, and when the person's
 * token is refused: they were deactivated, or have a new password.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/error.ts';
import { visibleName } from '../../domain/visible-text.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from '../../store/engine/index.ts';
import {
  type ConsoleSession,
  claimRenewal,
  createConsoleSession,
  deleteConsoleSession,
  deleteOldConsoleSessions,
  findConsoleSession,
  leaveRenewal,
  resealConsoleSession,
  touchConsoleSession,
} from '../../store/people/console-sessions.ts';
import { type ConsoleCookie, createConsoleCookie } from './cookie.ts';
import type { IssuerClient, Tokens } from './issuer-client.ts';
import { seal, unseal } from './seal.ts';

const minute = 60_000;
export const idleMs = 60 * minute;
export const longestMs = 12 * 60 * minute;
/** How often a use is stored. */
const touchMs = minute;
/** A token that expires sooner is renewed before it is used. */
const renewMs = 30_000;
/** How long other servers wait for the one that renews the tokens, and how often they look. */
const renewingMs = 15_000;
const renewPollMs = 100;
/** The lifetime of tokens whose issuer gives none. */
const usualTokenMs = 5 * minute;
const sweepMs = 10 * minute;
const sweepBatch = 200;

interface Kept extends Tokens {
  /** Ms since 1970. */
  expiresAt: number;
}

/** A session that counts now. */
export interface OpenSession {
  id: string;
  userId: string;
  createdAt: number;
  seenAt: number;
  /** The Authorization header of the person's requests. */
  authorization: string;
  /** Opens its tokens, also those that come later. */
  secret: Buffer;
}

export interface Sessions {
  /** Opens one; resolves to the Set-Cookie header. Throws `unauthorized` for a token that the APIs would refuse. */
  create(
    tokens: Tokens,
    from: { address: string; program: string },
  ): Promise<{ userId: string; cookie: string }>;
  /** The session of a request, which counts as a use unless the page says that it is idle. Throws `unauthorized`. */
  of(request: IncomingMessage): Promise<OpenSession>;
  /**
   * Whether it is still valid: not ended, not expired, and its token, or the one that the issuer renews it to, accepted.
   * Throws `integration_unavailable` when the issuer cannot be asked.
   */
  isOpen(session: OpenSession): Promise<boolean>;
  /** Ends the session of a request; its person and tokens, where there was one. */
  end(request: IncomingMessage): Promise<{ userId: string; tokens: Tokens } | undefined>;
  /** A Set-Cookie header that removes the cookie. */
  removal(): string;
  stop(): void;
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

/** The header with the person whom a page shows: it must not act as another who has signed in in this browser since. */
const shownPerson = 'x-andromeda-person';
const another = () =>
  new DomainError('unauthorized', 'Another person has signed in with this browser. Reload the page.');

export function createSessions(options: SessionsOptions): Sessions {
  const { store, authenticate, secure, now } = options;
  const cookie = createConsoleCookie({
    name: 'andromeda-console',
    secure,
    sameSite: 'Strict',
    maxAge: longestMs / 1000,
  });
  const renew = createRenewal(options);
  const sweeper = setInterval(() => sweep(options), sweepMs).unref();

  const { isOver, find, authorized } = createLookup(options, cookie);

  return {
    async create(tokens, { address, program }) {
      const userId = await authenticate(`Bearer ${tokens.accessToken}`);
      const secret = randomBytes(32);
      const id = idOf(secret);
      const sealed = seal(keptOf(tokens, now()), secret, id);
      const row = { id, userId, sealed, address, program: visibleName(program.slice(0, 200), 200) };
      await store.write((tx) => createConsoleSession(tx, row));
      return { userId, cookie: cookie.write(secret.toString('base64url')) };
    },
    async of(request) {
      const found = await find(request);
      if (!found || isOver(found.session)) throw signedOut();
      const { session, secret } = found;
      const shown = request.headers[shownPerson];
      if (shown !== undefined && shown !== session.userId) throw another();
      const kept = await renew(session, secret, found.kept);
      const authorization = await authorized(session, kept);
      const isUsed = request.headers['x-andromeda-console'] !== 'idle';
      if (isUsed && now() - session.seenAt >= touchMs) {
        await store.write((tx) => touchConsoleSession(tx, session.id), { flush: false });
      }
      const { id, userId, createdAt, seenAt } = session;
      return {
        id,
        userId,
        createdAt,
        seenAt: isUsed ? now() : seenAt,
        authorization,
        secret,
      };
    },
    async isOpen({ id, secret }) {
      const session = await findConsoleSession(store.read, id);
      const kept = session && (unseal(session.sealed, secret, id) as Kept | undefined);
      if (!kept || isOver(session)) return false;
      try {
        await authorized(session, await renew(session, secret, kept));
        return true;
      } catch (error) {
        if (error instanceof DomainError && error.code === 'unauthorized') return false;
        throw error;
      }
    },
    async end(request) {
      const found = await find(request);
      if (!found) return undefined;
      await store.write((tx) => deleteConsoleSession(tx, found.session.id));
      return { userId: found.session.userId, tokens: found.kept };
    },
    removal: () => cookie.remove(),
    stop: () => clearInterval(sweeper),
  };
}

/** The session of a cookie, and whether it counts. */
function createLookup(options: SessionsOptions, cookie: ConsoleCookie) {
  const { store, authenticate, now } = options;
  const isOver = ({ createdAt, seenAt }: Pick<ConsoleSession, 'createdAt' | 'seenAt'>) =>
    now() - createdAt >= longestMs || now() - seenAt >= idleMs;

  async function find(request: IncomingMessage) {
    for (const value of cookie.read(request)) {
      const secret = Buffer.from(value, 'base64url');
      if (secret.length !== 32) continue;
      const session = await findConsoleSession(store.read, idOf(secret));
      const kept = session && (unseal(session.sealed, secret, session.id) as Kept | undefined);
      if (kept) return { session, secret, kept };
    }
    return undefined;
  }

  async function authorized(session: ConsoleSession, kept: Kept): Promise<string> {
    const authorization = `Bearer ${kept.accessToken}`;
    const userId = await authenticate(authorization).catch(async (error: unknown) => {
      if (error instanceof DomainError && error.code === 'unauthorized')
        await remove(options, session, error);
      throw error;
    });
    if (userId !== session.userId) throw signedOut();
    return authorization;
  }

  return { isOver, find, authorized };
}

/** Renews tokens that are about to expire, once for all waiting requests of a session, on any server. */
function createRenewal(options: SessionsOptions) {
  const { store, now } = options;
  const running = new Map<string, Promise<Kept>>();

  async function renewNow(session: ConsoleSession, secret: Buffer, kept: Kept): Promise<Kept> {
    if (kept.refreshToken === undefined) {
      if (kept.expiresAt > now()) return kept;
      throw signedOut();
    }
    for (;;) {
      // Another request may have renewed them since this one read.
      const latest = await findConsoleSession(store.read, session.id);
      const present = latest && (unseal(latest.sealed, secret, session.id) as Kept | undefined);
      if (!present?.refreshToken) throw signedOut();
      if (present.expiresAt - now() > renewMs) return present;
      if (await store.write((tx) => claimRenewal(tx, session.id, renewingMs)))
        return renewWith(options, session, secret, { ...present, refreshToken: present.refreshToken });
      // Another server renews them. An issuer may end the sign-in when a refresh token is used twice.
      await sleep(renewPollMs);
    }
  }

  return (session: ConsoleSession, secret: Buffer, kept: Kept): Promise<Kept> | Kept => {
    if (kept.expiresAt - now() > renewMs) return kept;
    const known = running.get(session.id);
    if (known) return known;
    const renewing = renewNow(session, secret, kept).finally(() => running.delete(session.id));
    running.set(session.id, renewing);
    return renewing;
  };
}

async function renewWith(
  options: SessionsOptions,
  session: ConsoleSession,
  secret: Buffer,
  present: Kept & { refreshToken: string },
): Promise<Kept> {
  const { store, issuer, now } = options;
  try {
    const tokens = await issuer.refresh(present.refreshToken);
    const renewed = keptOf({ ...tokens, idToken: tokens.idToken ?? present.idToken }, now());
    const sealed = seal(renewed, secret, session.id);
    if (!(await store.write((tx) => resealConsoleSession(tx, session.id, sealed)))) throw signedOut();
    return renewed;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'unauthorized') await remove(options, session, error);
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

function sweep({ store, log, now }: SessionsOptions): void {
  const before = { created: now() - longestMs, seen: now() - idleMs };
  store
    .write((tx) => deleteOldConsoleSessions(tx, before, sweepBatch))
    .catch((error: unknown) => log.error('console.request.failed', { path: 'sweep', error }));
}

function keptOf(tokens: Tokens, now: number): Kept {
  const { expiresIn } = tokens;
  return { ...tokens, expiresAt: now + (expiresIn === undefined ? usualTokenMs : expiresIn * 1000) };
}

function idOf(secret: Buffer): string {
  return createHash('sha256').update(secret).digest('base64url');
}

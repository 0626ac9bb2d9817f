/** A browser's sign-in at the issuer and its return. The server keeps no state meanwhile: a cookie carries it. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError, SignInRefusal } from '../../domain/error.ts';
import { createRateLimiter } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { hasHungUp, noteRefusal, sendJson } from '../../lib/response.ts';
import { seal, unseal } from '../../lib/secrets-key.ts';
import { issuerFault } from '../../lib/sign-in-refusal.ts';
import { sourceNetwork } from '../../lib/source-address.ts';
import { redirect, requireOwnPage } from './headers.ts';
import type { IssuerClient, SignInChecks, Tokens } from './issuer-client.ts';
import { createConsoleCookies, isAuthorized, type Sessions } from './sessions.ts';

export interface SignInOptions {
  /** The console's origin, as browsers see it. */
  url: string;
  issuer: IssuerClient;
  sessions: Sessions;
  /** Encrypts the cookies of pending sign-ins, so that several servers accept them; undefined: random at each start. */
  consoleSecret?: Buffer | undefined;
  /** The oldest authentication that is accepted, in ms; undefined: the issuer decides. */
  maxAgeMs(): Promise<number | undefined>;
  log: Logger;
  now(): number;
  uptime(): number;
}

interface PendingSignIn extends SignInChecks {
  to: string;
  anew: boolean;
  /** Ms since 1970. */
  until: number;
}

/** How long the answer to a sign-out waits for the URL of the issuer's sign-out page. */
const endWaitMs = 3_000;

export function createSignInRoutes(options: SignInOptions) {
  const { url: own, issuer, sessions, maxAgeMs, log, now, uptime } = options;
  const travels = createTravels(own.startsWith('https:'), options.consoleSecret ?? randomBytes(32), now);
  const isTooSoon = createLimits(uptime);

  return {
    /** Redirects to the issuer. A browser that is signed in goes straight to its page, unless it must sign in anew. */
    async begin(request: IncomingMessage, response: ServerResponse, asked: URL, address: string) {
      const { to, anew, isPlain } = wantedAt(asked);
      if (isTooSoon(response, address)) return fail(response, 'busy', to);
      try {
        // Another tab has completed a sign-in.
        if (!anew && (await isAuthorized(sessions.of(request)))) return redirect(response, to);
        const { url, pending } = await issuer.begin(await maxAgeMs(), isPlain);
        redirect(response, url, travels.begin(request, { ...pending, to, anew }));
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        fail(response, reasonOf(error), to);
      }
    },
    /** Creates the session of a browser that the issuer sent back, and redirects it to its page. */
    async finish(request: IncomingMessage, response: ServerResponse, url: URL, address: string) {
      if (await hasHungUp(response)) return void response.destroy();
      const found = travels.find(request, url.searchParams.get('state') ?? '');
      const { to = '/', state } = found?.away ?? {};
      if (isTooSoon(response, address, state)) return fail(response, 'busy', to);
      try {
        const isOpen = !found?.away.anew && (await isAuthorized(sessions.of(request)));
        if (isOpen) return redirect(response, to, found?.removal);
        if (!found) throw new SignInRefusal('again', 'This browser did not start a sign-in here.');
        if (issuer.isTargetRefused(url, found.away))
          return redirect(response, plainAt(found.away), found.removal);
        const tokens = await issuer.finish(new URL(`/sign-in/callback${url.search}`, own), found.away);
        const from = { address, program: (request.headers['user-agent'] ?? '').slice(0, 200) };
        const { userId, cookie: session } = await sessions.create(tokens, from);
        log.info('console.signed_in', { ...from, userId });
        redirect(response, to, [session, ...found.removal]);
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        fail(response, reasonOf(error), to, found?.removal);
      }
    },
  };
}

/** Ends the session of a browser, and answers with the page that ends its sign-in at the issuer. */
export async function signOut(
  { issuer, sessions, log }: SignInOptions,
  request: IncomingMessage,
  response: ServerResponse,
  address: string,
): Promise<void> {
  requireOwnPage(request);
  const ended = await sessions.end(request);
  if (ended) log.info('console.signed_out', { address, userId: ended.userId });
  response.setHeader('Set-Cookie', sessions.removal());
  sendJson(response, 200, { url: (ended && (await endAtIssuer(issuer, ended.tokens))) ?? '/signed-out' });
}

/** `/in` is for people whose access lapsed for want of a sign-in: it always begins a new one. */
function wantedAt({ pathname, searchParams }: URL) {
  const isPlain = searchParams.has('plain');
  if (pathname === '/in') return { to: '/signed-in', anew: true, isPlain };
  return { to: pathOfOurs(searchParams.get('to')), anew: false, isPlain };
}

/** The path of the same sign-in without the parameter `resource`. */
function plainAt({ to, anew }: PendingSignIn): string {
  return `${anew ? '/in' : '/sign-in'}?${new URLSearchParams({ to, plain: '' })}`;
}

/** Redirects to a page that shows the reason, since the browser navigates. */
function fail(response: ServerResponse, why: string, to: string, cookies: string[] = []): void {
  if (why === 'busy') noteRefusal(response, 'too many sign-ins');
  const query = new URLSearchParams({ why, ...(to !== '/' && { to }) });
  redirect(response, `/signed-out?${query}`, cookies);
}

/**
 * Rate limits: each sign-in and each return sends requests to the issuer. They use the monotonic clock, as a wall clock set
 * back would block every sign-in.
 */
function createLimits(uptime: () => number) {
  const begun = createRateLimiter({ burst: 60, everyMs: 1000 }, uptime);
  const returns = createRateLimiter({ burst: 5, everyMs: 30_000 }, uptime);
  /** Returns from a sign-in that began here are limited by its state; all other requests by source network. */
  return (response: ServerResponse, address: string, state?: string): boolean => {
    const waitMs = state === undefined ? begun.take(sourceNetwork(address)) : returns.take(state);
    if (waitMs > 0) response.setHeader('Retry-After', Math.ceil(waitMs / 1000));
    return waitMs > 0;
  };
}

/** The URL of the issuer's sign-out page. An unreachable issuer must not delay a sign-out here, so it has a timeout. */
function endAtIssuer(issuer: IssuerClient, tokens: Tokens): Promise<string | undefined> {
  const late = sleep(endWaitMs, undefined, { ref: false });
  return Promise.race([issuer.end(tokens).catch(() => undefined), late]);
}

const purpose = 'sign-in';
const awayMs = 10 * 60_000;
/** The most sign-ins that one browser may have under way. Their cookies must fit a request's headers. */
const mostAway = 5;
const longestPath = 1_000;

/** A browser's pending sign-ins. Each has its own cookie, so that tabs do not overwrite each other's. */
function createTravels(secure: boolean, secret: Buffer, now: () => number) {
  const cookies = createConsoleCookies({
    name: 'andromeda-console-sign-in',
    secure,
    // The issuer's site redirects the browser here, and the cookie must come with it.
    sameSite: 'Lax',
    maxAge: awayMs / 1000,
  });
  const labelOf = (state: string) => state.slice(0, 16);

  function awayOf(value: string): PendingSignIn | undefined {
    const away = unseal(value, secret, purpose) as PendingSignIn | undefined;
    return away && away.until > now() ? away : undefined;
  }

  return {
    /** Set-Cookie headers: the new cookie, and the removal of those that are expired or too many. */
    begin(request: IncomingMessage, facts: Omit<PendingSignIn, 'until'>): string[] {
      const away: PendingSignIn = { ...facts, until: now() + awayMs };
      const held = cookies
        .read(request)
        .map(({ label, value }) => ({ label, until: awayOf(value)?.until ?? 0 }));
      const newestFirst = held.sort((a, b) => b.until - a.until);
      const rest = newestFirst.filter(({ until }, at) => until === 0 || at >= mostAway - 1);
      return [
        cookies.write(labelOf(away.state), seal(away, secret, purpose)),
        ...rest.filter(({ label }) => /^[\w-]+$/.test(label)).map(({ label }) => cookies.remove(label)),
      ];
    },
    /** The pending sign-in with this state, and the Set-Cookie header that removes it. */
    find(request: IncomingMessage, state: string): { away: PendingSignIn; removal: string[] } | undefined {
      const label = labelOf(state);
      for (const one of cookies.read(request)) {
        const away = one.label === label ? awayOf(one.value) : undefined;
        if (away?.state === state) return { away, removal: [cookies.remove(label)] };
      }
      return undefined;
    },
  };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof DomainError)) return 'failed';
  // Discovery's faults get this code so that no session ends; a sign-in shows the actual fault.
  if (error.code === 'integration_unavailable')
    return issuerFault(error.cause, 'this server')?.reason ?? 'issuer_away';
  if (error.code === 'service_unavailable') return 'unavailable';
  return error instanceof SignInRefusal ? error.reason : 'refused';
}

/** Prevents an open redirect: only paths of the console pass, also where `..` leaves two slashes at the start. */
function pathOfOurs(to: string | null): string {
  const url = to?.startsWith('/') ? URL.parse(to, 'http://console.invalid') : null;
  if (url?.origin !== 'http://console.invalid') return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return /^\/[/\\]/.test(path) || path.length > longestPath ? '/' : path;
}

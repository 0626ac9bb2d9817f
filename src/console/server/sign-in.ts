/** A browser's sign-in at the issuer and its return. Nothing is stored meanwhile: a cookie carries what the return needs. */
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
import type { IssuerClient, Pending, Tokens } from './issuer-client.ts';
import { createConsoleCookies, isAuthorized, type Sessions } from './sessions.ts';

export interface SignInOptions {
  /** What browsers call the console by: an origin. */
  url: string;
  issuer: IssuerClient;
  sessions: Sessions;
  /** What a browser's way through a sign-in is encrypted with, where several servers take it back; else each start makes one. */
  consoleSecret?: Buffer | undefined;
  /** How long ago a person may have proved who they are, in ms; undefined: as the issuer likes. */
  maxAgeMs(): Promise<number | undefined>;
  log: Logger;
  now(): number;
  uptime(): number;
}

interface Away extends Pending {
  to: string;
  anew: boolean;
  /** Ms since 1970. */
  until: number;
}

/** How long the answer to a sign-out waits to learn where the issuer ends its own session. */
const endWaitMs = 3_000;

export function createSignInRoutes(options: SignInOptions) {
  const { url: own, issuer, sessions, maxAgeMs, log, now, uptime } = options;
  const travels = createTravels(own.startsWith('https:'), options.consoleSecret ?? randomBytes(32), now);
  const isTooSoon = createLimits(uptime);

  return {
    /** Sends the browser to the issuer; one that is signed in, to where it wants to go unless it signs in anew. */
    async begin(request: IncomingMessage, response: ServerResponse, asked: URL, address: string) {
      const { to, anew, target } = wantedAt(asked);
      if (isTooSoon(response, address)) return fail(response, 'busy', to);
      try {
        // Another tab was faster.
        if (!anew && (await isAuthorized(sessions.of(request)))) return redirect(response, to);
        const { url, pending } = await issuer.begin(await maxAgeMs(), target);
        redirect(response, url, travels.begin(request, { ...pending, to, anew }));
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        fail(response, reasonOf(error), to);
      }
    },
    /** Opens the session of a browser that is back, and sends it where it wanted to go. */
    async finish(request: IncomingMessage, response: ServerResponse, url: URL, address: string) {
      if (await hasHungUp(response)) return void response.destroy();
      const found = travels.find(request, url.searchParams.get('state') ?? '');
      const { to = '/', state } = found?.away ?? {};
      if (isTooSoon(response, address, state)) return fail(response, 'busy', to);
      try {
        const isOpen = !found?.away.anew && (await isAuthorized(sessions.of(request)));
        if (isOpen) return redirect(response, to, found?.removal);
        if (!found) throw new SignInRefusal('again', 'This browser did not start a sign-in here.');
        if (isTargetRefused(url, found.away)) return redirect(response, plainAt(found.away), found.removal);
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
    async signOut(request: IncomingMessage, response: ServerResponse, address: string) {
      requireOwnPage(request);
      const ended = await sessions.end(request);
      if (ended) log.info('console.signed_out', { address, userId: ended.userId });
      response.setHeader('Set-Cookie', sessions.removal());
      sendJson(response, 200, { url: (ended && (await endAtIssuer(issuer, ended.tokens))) ?? '/signed-out' });
    },
  };
}

/** At `/in` are those whose access has lapsed without a sign-in. */
function wantedAt({ pathname, searchParams }: URL): Pick<Away, 'to' | 'anew' | 'target'> {
  const target = searchParams.has('plain') ? {} : undefined;
  if (pathname === '/in') return { to: '/signed-in', anew: true, target };
  return { to: pathOfOurs(searchParams.get('to')), anew: false, target };
}

/** One that knows resources, and not this one, says `invalid_target`; Microsoft Entra ID says that of any (AADSTS9010010). */
function isTargetRefused({ searchParams }: URL, { target }: Away): boolean {
  const refusal = `${searchParams.get('error')} ${searchParams.get('error_description')}`;
  return target?.resource !== undefined && /^(invalid_request |\w+ AADSTS)/.test(refusal);
}

/** Where the same sign-in begins without saying what its tokens are for. */
function plainAt({ to, anew }: Away): string {
  return `${anew ? '/in' : '/sign-in'}?${new URLSearchParams({ to, plain: '' })}`;
}

/** A browser that navigates is shown a page, which says why. */
function fail(response: ServerResponse, why: string, to: string, cookies: string[] = []): void {
  if (why === 'busy') noteRefusal(response, 'too many sign-ins');
  const query = new URLSearchParams({ why, ...(to !== '/' && { to }) });
  redirect(response, `/signed-out?${query}`, cookies);
}

/**
 * Each sign-in and each return sends requests to the issuer. By the monotonic clock: a wall clock set back would block every
 * sign-in.
 */
function createLimits(uptime: () => number) {
  const begun = createRateLimiter({ burst: 60, everyMs: 1000 }, uptime);
  const returns = createRateLimiter({ burst: 5, everyMs: 30_000 }, uptime);
  /** Returns of a sign-in that began here, with its state, have a limit of their own; all others count as new sign-ins. */
  return (response: ServerResponse, address: string, state?: string): boolean => {
    const waitMs = state === undefined ? begun.take(sourceNetwork(address)) : returns.take(state);
    if (waitMs > 0) response.setHeader('Retry-After', Math.ceil(waitMs / 1000));
    return waitMs > 0;
  };
}

/** Where the issuer ends its own session. One that cannot be reached must not keep a person signed in here. */
function endAtIssuer(issuer: IssuerClient, tokens: Tokens): Promise<string | undefined> {
  const late = sleep(endWaitMs, undefined, { ref: false });
  return Promise.race([issuer.end(tokens).catch(() => undefined), late]);
}

const purpose = 'sign-in';
const awayMs = 10 * 60_000;
/** Sign-ins that one browser may have under way, in as many tabs. Their cookies must fit a request's headers. */
const mostAway = 5;
const longestPath = 1_000;

/** The sign-ins that a browser has under way: a cookie for each, so that no tab takes away what another is to bring back. */
function createTravels(secure: boolean, secret: Buffer, now: () => number) {
  const cookies = createConsoleCookies({
    name: 'andromeda-console-sign-in',
    secure,
    // It comes back with a browser that another site sends.
    sameSite: 'Lax',
    maxAge: awayMs / 1000,
  });
  const labelOf = (state: string) => state.slice(0, 16);

  function awayOf(value: string): Away | undefined {
    const away = unseal(value, secret, purpose) as Away | undefined;
    return away && away.until > now() ? away : undefined;
  }

  return {
    /** Set-Cookie headers: the new one, and the removal of those that are over or too many. */
    begin(request: IncomingMessage, facts: Omit<Away, 'until'>): string[] {
      const away: Away = { ...facts, until: now() + awayMs };
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
    /** The one of a state, and the Set-Cookie header that removes it. */
    find(request: IncomingMessage, state: string): { away: Away; removal: string[] } | undefined {
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
  // What discovery finds ends no session, and a sign-in says what is wrong with it.
  if (error.code === 'integration_unavailable')
    return issuerFault(error.cause, 'this server')?.reason ?? 'issuer_away';
  if (error.code === 'service_unavailable') return 'unavailable';
  return error instanceof SignInRefusal ? error.reason : 'refused';
}

/** Never another site: a link to the console must lead nowhere else, also where dots in it make it begin with two slashes. */
function pathOfOurs(to: string | null): string {
  const url = to?.startsWith('/') ? URL.parse(to, 'http://console.invalid') : null;
  if (url?.origin !== 'http://console.invalid') return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return /^\/[/\\]/.test(path) || path.length > longestPath ? '/' : path;
}

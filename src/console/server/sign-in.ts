/** A browser's sign-in at the issuer and its return. Nothing is stored meanwhile: a cookie carries what the return needs. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { hasHungUp } from '../../lib/hung-up.ts';
import { createRateLimiter } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { sendJson } from '../../lib/send-json.ts';
import { sourceNetwork } from '../../lib/source-address.ts';
import { createConsoleCookies } from './cookie.ts';
import { redirect, requireOwnPage } from './headers.ts';
import type { IssuerClient, Pending } from './issuer-client.ts';
import { seal, unseal } from './seal.ts';
import type { Sessions } from './sessions.ts';

export interface SignInRoutes {
  /** Sends the browser to the issuer; one that is signed in, to where it wants to go. */
  begin(request: IncomingMessage, response: ServerResponse, url: URL, address: string): Promise<void>;
  /** Opens the session of a browser that is back, and sends it where it wanted to go. */
  finish(request: IncomingMessage, response: ServerResponse, url: URL, address: string): Promise<void>;
  /** Ends the session, and says where the issuer ends its own. */
  signOut(request: IncomingMessage, response: ServerResponse, address: string): Promise<void>;
}

export interface SignInOptions {
  url: string;
  issuer: IssuerClient;
  sessions: Sessions;
  /** What a browser's way through a sign-in is encrypted with, where several servers take it back; else each start makes one. */
  consoleSecret?: Buffer | undefined;
  log: Logger;
  now(): number;
  uptime(): number;
}

interface Away extends Pending {
  /** A path of ours. */
  to: string;
  /** Ms since 1970. */
  until: number;
}

/** How long the answer to a sign-out waits to learn where the issuer ends its own session. */
const endWaitMs = 3_000;

export function createSignInRoutes(options: SignInOptions): SignInRoutes {
  const { url: own, issuer, sessions, log, now, uptime } = options;
  const travels = createTravels(own.startsWith('https:'), options.consoleSecret ?? randomBytes(32), now);
  // Each sends requests to the issuer. By the monotonic clock: a wall clock set back would block every sign-in.
  const begun = createRateLimiter({ burst: 60, everyMs: 1000 }, uptime);
  const returns = createRateLimiter({ burst: 5, everyMs: 30_000 }, uptime);

  async function isSignedIn(request: IncomingMessage): Promise<boolean> {
    return sessions.of(request).then(
      () => true,
      (error: unknown) => {
        if (error instanceof DomainError && error.code === 'unauthorized') return false;
        throw error;
      },
    );
  }

  /** A browser that navigates is shown a page, which says why. */
  function fail(response: ServerResponse, why: string, to: string, cookies: string[] = []): void {
    const query = new URLSearchParams({ why, ...(to !== '/' && { to }) });
    redirect(response, `/signed-out?${query}`, cookies);
  }

  function isRefused(limit: typeof begun, key: string, response: ServerResponse): boolean {
    const waitMs = limit.take(key);
    if (waitMs > 0) response.setHeader('Retry-After', Math.ceil(waitMs / 1000));
    return waitMs > 0;
  }

  return {
    async begin(request, response, url, address) {
      const to = pathOfOurs(url.searchParams.get('to'));
      if (isRefused(begun, sourceNetwork(address), response)) return fail(response, 'busy', to);
      try {
        // Another tab was faster.
        if (await isSignedIn(request)) return redirect(response, to);
        const { url: target, pending } = await issuer.begin();
        redirect(response, target, travels.begin(request, { ...pending, to }));
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        fail(response, reasonOf(error), to);
      }
    },
    async finish(request, response, { search, searchParams }, address) {
      if (await hasHungUp(response)) return void response.destroy();
      const found = travels.find(request, searchParams.get('state') ?? '');
      const { to = '/', state = '' } = found?.away ?? {};
      // Returns of a sign-in that began here have a limit of their own; all others count as new sign-ins.
      const isTooMany = found
        ? isRefused(returns, state, response)
        : isRefused(begun, sourceNetwork(address), response);
      if (isTooMany) return fail(response, 'busy', to);
      try {
        if (await isSignedIn(request)) return redirect(response, to, found?.removal);
        if (!found) throw new DomainError('unauthorized', 'This browser did not start a sign-in here.');
        const tokens = await issuer.finish(new URL(`/sign-in/callback${search}`, own), found.away);
        const program = request.headers['user-agent'] ?? '';
        const { userId, cookie: session } = await sessions.create(tokens, { address, program });
        log.info('console.signed_in', { address, userId, program: program.slice(0, 200) });
        redirect(response, to, [session, ...found.removal]);
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        fail(response, reasonOf(error), to, found?.removal);
      }
    },
    async signOut(request, response, address) {
      requireOwnPage(request);
      const ended = await sessions.end(request);
      if (ended) log.info('console.signed_out', { address, userId: ended.userId });
      // An unreachable issuer must not keep a person signed in here.
      const at = ended && (await within(endWaitMs, issuer.end(ended.tokens)));
      response.setHeader('Set-Cookie', sessions.removal());
      sendJson(response, 200, { url: at ?? '/signed-out' });
    },
  };
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

/** What was answered in time; undefined otherwise. */
async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([answer.catch(() => undefined), late]).finally(() => clearTimeout(timer));
}

/** What the page says of a sign-in that failed; the page has a sentence for each. */
function reasonOf(error: unknown): string {
  if (!(error instanceof DomainError)) return 'failed';
  if (error.code === 'integration_unavailable') return 'issuer_away';
  if (error.code === 'service_unavailable') return 'unavailable';
  if (error.message.includes('no account')) return 'no_account';
  if (error.message.includes('deactivated')) return 'deactivated';
  return error.cause === undefined && error.code === 'unauthorized' ? 'again' : 'refused';
}

/** Never another site: a link to the console must lead nowhere else, also where dots in it make it begin with two slashes. */
function pathOfOurs(to: string | null): string {
  const url = to?.startsWith('/') ? URL.parse(to, 'http://console.invalid') : null;
  if (url?.origin !== 'http://console.invalid') return '/';
  const path = `${url.pathname}${url.search}${url.hash}`;
  return /^\/[/\\]/.test(path) || path.length > longestPath ? '/' : path;
}

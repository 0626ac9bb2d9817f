/** A browser's way to the issuer and back. Nothing is stored for one that is away: it carries what it must bring back. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../domain/error.ts';
import type { Logger } from '../lib/log.ts';
import { createConsoleCookie } from './cookie.ts';
import { redirect, requireOwnPage, sendJson } from './headers.ts';
import type { IssuerClient, Pending } from './issuer-client.ts';
import { seal, unseal } from './seal.ts';
import type { Sessions } from './sessions.ts';

export interface SignInRoutes {
  /** Sends the browser to the issuer. */
  begin(response: ServerResponse, url: URL): Promise<void>;
  /** Opens the session of a browser that is back, and sends it where it wanted to go. */
  finish(request: IncomingMessage, response: ServerResponse, url: URL, address: string): Promise<void>;
  /** Ends the session, and says where the issuer ends its own. */
  signOut(request: IncomingMessage, response: ServerResponse, address: string): Promise<void>;
}

interface Away extends Pending {
  /** A path of ours. */
  to: string;
  /** Ms since 1970. */
  until: number;
}

const purpose = 'sign-in';
const awayMs = 10 * 60_000;

export function createSignInRoutes(options: {
  url: string;
  issuer: IssuerClient;
  sessions: Sessions;
  log: Logger;
  now(): number;
}): SignInRoutes {
  const { url: own, issuer, sessions, log, now } = options;
  // Of this process only: a sign-in that a restart interrupts begins again by itself.
  const secret = randomBytes(32);
  const cookie = createConsoleCookie({
    name: 'andromeda-console-sign-in',
    secure: own.startsWith('https:'),
    // It comes back with a browser that another site sends.
    sameSite: 'Lax',
    maxAge: awayMs / 1000,
  });

  function awayOf(request: IncomingMessage): Away | undefined {
    const away = unseal(cookie.read(request) ?? '', secret, purpose) as Away | undefined;
    return away && away.until > now() ? away : undefined;
  }

  return {
    async begin(response, url) {
      const to = pathOfOurs(url.searchParams.get('to'));
      const { url: target, pending } = await issuer.begin();
      const away: Away = { ...pending, to, until: now() + awayMs };
      redirect(response, target, [cookie.write(seal(away, secret, purpose))]);
    },
    async finish(request, response, { search }, address) {
      const away = awayOf(request);
      const program = request.headers['user-agent'] ?? '';
      try {
        if (!away) throw new DomainError('unauthorized', 'This browser was not sent away from here.');
        const tokens = await issuer.finish(new URL(`/sign-in/callback${search}`, own), away);
        const { userId, cookie: session } = await sessions.create(tokens, { address, program });
        log.info('console.signed_in', { address, userId, program: program.slice(0, 200) });
        redirect(response, away.to, [session, cookie.remove()]);
      } catch (error) {
        log.warn('console.sign_in.failed', { address, error });
        const why = reasonOf(error);
        redirect(response, `/signed-out?${new URLSearchParams({ why })}`, [cookie.remove()]);
      }
    },
    async signOut(request, response, address) {
      requireOwnPage(request);
      const ended = await sessions.end(request);
      if (ended) log.info('console.signed_out', { address, userId: ended.userId });
      // An issuer that is away must not keep anybody signed in here.
      const at = ended && (await issuer.end(ended.tokens).catch(() => undefined));
      response.setHeader('Set-Cookie', sessions.removal());
      sendJson(response, 200, { url: at ?? '/signed-out' });
    },
  };
}

/** What the page says of a sign-in that failed; the page has a sentence for each. */
function reasonOf(error: unknown): string {
  if (!(error instanceof DomainError)) return 'failed';
  if (error.code === 'integration_unavailable') return 'issuer_away';
  if (error.message.includes('no account')) return 'no_account';
  if (error.message.includes('deactivated')) return 'deactivated';
  return error.cause === undefined && error.code === 'unauthorized' ? 'again' : 'refused';
}

/** Never another site: a link to the console must lead nowhere else. */
function pathOfOurs(to: string | null): string {
  if (to === null || to.length > 2000) return '/';
  const url = URL.parse(to, 'http://console.invalid');
  if (url?.origin !== 'http://console.invalid' || !to.startsWith('/')) return '/';
  return `${url.pathname}${url.search}${url.hash}`;
}

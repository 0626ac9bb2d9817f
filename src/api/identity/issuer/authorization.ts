/**
 * The person's half of the authorization code flow (RFC 6749, 4.1, with PKCE, RFC 7636). As for the device flow, its
 * pages are our own, not the library's:
 *
 *     GET /auth?client_id=…      signed in: 303 with a code; else the sign-in page. Nothing is stored before that
 *     POST /auth/sign-in         → 303 with a code
 *     GET /session/end           signs the browser out (OpenID Connect RP-Initiated Logout 1.0), → 303
 *
 * Its only client is the web console, which is a part of the installation, so the person need not approve anything. The
 * code is exchanged at the library's token endpoint.
 */
import { compactVerify, createLocalJWKSet } from 'jose';
import { createRateLimiter, type RateLimiter } from '../../../lib/limits.ts';
import type { PasswordAccount } from '../../../store/people/identities.ts';
import { newGrantId } from './accounts.ts';
import { type Browser, methodsOf } from './browser.ts';
import { apiResource, grantedScopes, type IssuerClient, type WebClient } from './clients.ts';
import { endSessionPath } from './configuration.ts';
import type { Exchange, PagesContext } from './exchange.ts';
import { messagePage, pageHeaders, redirect, sendPage } from './pages.ts';
import { sendSignInForm, signInWithForm, type Unfinished } from './sign-in-form.ts';

type Context = PagesContext & { codes: RateLimiter };

interface AuthorizationRequest {
  client: IssuerClient & { web: WebClient };
  query: string;
  state: string;
  scope: string;
  nonce: string | undefined;
  challenge: string;
}

export function createAuthorizationPages(options: PagesContext) {
  // Each code takes two writes to disk.
  const codes = createRateLimiter({ burst: 30, everyMs: 2000 }, options.uptime);
  const context = { ...options, codes };
  const hasClient = options.clients.some((client) => client.web);
  return {
    /** Resolves to false for a request to another page. */
    async show(exchange: Exchange): Promise<boolean> {
      const { pathname } = exchange.url;
      if (!hasClient) return false;
      if (pathname === '/auth') await showAuthorization(context, exchange);
      else if (pathname === endSessionPath) await endSession(context, exchange);
      else return false;
      return true;
    },
    async post(exchange: Exchange, form: URLSearchParams): Promise<void> {
      const asked = requireAsked(context, exchange, new URLSearchParams(form.get('request') ?? ''));
      if (!asked) return;
      const result = await signInWithForm(context, exchange, form);
      if (result.outcome === 'signed_in') {
        const { account, browser, cookies } = result;
        return answer(context, exchange, asked, { account, browser }, cookies);
      }
      sendSignIn(context, exchange, asked, result);
    },
  };
}

async function showAuthorization(context: Context, exchange: Exchange): Promise<void> {
  const { browsers } = context;
  const asked = requireAsked(context, exchange, exchange.url.searchParams);
  if (!asked) return;
  const account = await browsers.findAccount(exchange.browser);
  if (!account) return sendSignIn(context, exchange, asked);
  return answer(context, exchange, asked, { account, browser: exchange.browser });
}

function requireAsked(
  { clients, issuer }: Context,
  { res }: Exchange,
  query: URLSearchParams,
): AuthorizationRequest | undefined {
  const one = (name: string) => (query.getAll(name).length === 1 ? (query.get(name) ?? '') : '');
  const found = clients.find((client) => client.id === one('client_id') && client.web);
  // Never redirects to an address that is not the client's, not even with an error (RFC 6749, 4.1.2.1).
  if (!found?.web || one('redirect_uri') !== found.web.redirectUri) {
    const message = 'The address that you came from is none that this issuer knows.';
    sendPage(res, 400, messagePage('This did not work', message));
    return undefined;
  }
  const client = { ...found, web: found.web };
  const state = one('state');
  const challenge = one('code_challenge');
  const isPkce = one('code_challenge_method') === 'S256' && /^[\w-]{43}$/.test(challenge);
  if (one('response_type') !== 'code' || !isPkce || state.length > 500) {
    redirect(res, answerUri(issuer, client.web, { error: 'invalid_request', state: state.slice(0, 500) }));
    return undefined;
  }
  const nonce = one('nonce').slice(0, 200) || undefined;
  return { client, query: String(query), state, scope: one('scope'), nonce, challenge };
}

/** Redirects the browser back with a code, which is valid once and for a minute. */
async function answer(
  { provider, issuer, codes, log }: Context,
  { res, address }: Exchange,
  asked: AuthorizationRequest,
  { account, browser }: { account: PasswordAccount; browser: Browser },
  cookies: string[] = [],
): Promise<void> {
  const { client, state, nonce, challenge } = asked;
  const { userId } = account;
  if (codes.take(userId) > 0) {
    const message = 'You signed in too often just now. Wait a minute and try again.';
    return sendPage(res, 429, messagePage('Wait a minute', message), { 'Retry-After': '60' });
  }
  const scope = grantedScopes(client, asked.scope).join(' ');
  const grant = new provider.Grant({ accountId: userId, clientId: client.id });
  grant.jti = newGrantId(account);
  grant.addOIDCScope(scope);
  grant.addResourceScope(apiResource, scope);
  const grantId = await grant.save();
  const known = await provider.Client.find(client.id);
  if (!known) throw new Error('the library does not know the console');
  const code = new provider.AuthorizationCode({
    accountId: userId,
    authTime: browser.authTime ?? 0,
    amr: methodsOf(browser),
    client: known,
    codeChallenge: challenge,
    codeChallengeMethod: 'S256',
    expiresWithSession: false,
    grantId,
    gty: 'authorization_code',
    ...(nonce !== undefined && { nonce }),
    redirectUri: client.web.redirectUri,
    resource: apiResource,
    scope,
  });
  const value = await code.save();
  log.info('issuer.code', { address, userId, clientId: client.id });
  redirect(res, answerUri(issuer, client.web, { code: value, state }), { 'Set-Cookie': cookies });
}

/** The redirect URI, with the issuer's identifier (RFC 9207). */
function answerUri(issuer: URL, { redirectUri }: WebClient, parameters: Record<string, string>): string {
  const uri = new URL(redirectUri);
  for (const [name, value] of Object.entries({ ...parameters, iss: issuer.origin })) {
    uri.searchParams.set(name, value);
  }
  return uri.href;
}

function sendSignIn(
  context: Context,
  exchange: Exchange,
  { client, query }: AuthorizationRequest,
  result?: Unfinished,
): void {
  const carried = { name: 'request', value: query };
  const form = { clientName: client.name, action: '/auth/sign-in', carried };
  sendSignInForm(context, exchange, form, result, {
    // Browsers apply form-action to the redirect after a form as well, which leads back to the console.
    'Content-Security-Policy': pageHeaders['Content-Security-Policy'].replace(
      "form-action 'self'",
      `form-action 'self' ${new URL(client.web.redirectUri).origin}`,
    ),
  });
}

/** Signs the browser out if the ID token is of the person signed in there, and redirects it back. */
async function endSession({ clients, jwks, browsers }: Context, exchange: Exchange): Promise<void> {
  const { res, url, browser } = exchange;
  const claims = await compactVerify(
    url.searchParams.get('id_token_hint') ?? '',
    createLocalJWKSet(jwks),
  ).then(
    ({ payload }) => JSON.parse(Buffer.from(payload).toString()) as { sub?: string; aud?: string },
    () => undefined,
  );
  const client = clients.find(({ id }) => id === claims?.aud);
  const back = url.searchParams.get('post_logout_redirect_uri');
  if (!client?.web || (back !== null && back !== client.web.signedOutUri)) {
    const message = 'The link to sign out is not one of ours. Sign out in the console.';
    return sendPage(res, 400, messagePage('This did not work', message));
  }
  const isTheirs = browser.userId === claims?.sub;
  if (isTheirs) await browsers.end(browser);
  const cookie = isTheirs ? { 'Set-Cookie': browsers.cookie(browsers.fresh()) } : {};
  const state = url.searchParams.get('state')?.slice(0, 500);
  const target = new URL(client.web.signedOutUri);
  if (state) target.searchParams.set('state', state);
  redirect(res, target.href, cookie);
}

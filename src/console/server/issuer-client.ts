/** The issuer as the console's client sees it (openid-client): sign-in, refresh, sign-out. Loaded by the first sign-in. */
import type { ClientAuth, TokenEndpointResponse } from 'openid-client';
import { DomainError, SignInRefusal } from '../../domain/error.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { issuerFault, notingTokens, orRevoke } from '../../lib/sign-in-refusal.ts';

export interface IssuerClientOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  target?: Target;
  /** How the issuer's endpoints are called: over HTTP or, where it is a part of this process, without. */
  fetch: typeof fetch;
  redirectUri: string;
  signedOutUri: string;
  now(): number;
}

/** What tokens are asked for, as parameters of a request (RFC 8707). */
type Target = { resource?: string };

export interface Tokens {
  accessToken: string;
  refreshToken: string | undefined;
  idToken: string | undefined;
  expiresIn: number | undefined;
  /** When the person authenticated: `auth_time` of the ID token (OpenID Connect Core 1.0, 2), in ms since 1970. */
  signedInAt: number | undefined;
  target?: Target | undefined;
}

/** What a browser must bring back with its code. */
export interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  /** How long ago the person may have proved who they are, in ms; left out: as the issuer likes. */
  maxAgeMs?: number | undefined;
  target?: Target | undefined;
}

export interface IssuerClient {
  /** Where a browser is sent, and what to keep until it is back. The person signs in anew where the last time is longer ago. */
  begin(maxAgeMs: number | undefined, target?: Target): Promise<{ url: string; pending: Pending }>;
  /** The tokens for the address that a browser came back to. Throws `unauthorized` where it brings no good code. */
  finish(callback: URL, pending: Pending): Promise<Tokens>;
  /** New tokens. Throws `unauthorized` where the issuer gives none any more. */
  refresh(refreshToken: string, target: Target | undefined): Promise<Tokens>;
  /** Where the issuer's own session is ended; undefined where it has no such page. The refresh token is revoked. */
  end(tokens: Tokens): Promise<string | undefined>;
}

export const timeoutSeconds = 10;

/** Nothing is fetched before it is needed. Every function throws `integration_unavailable` while the issuer is away. */
export function createIssuerClient(options: IssuerClientOptions): IssuerClient {
  let opened: ReturnType<typeof discover> | undefined;

  async function open() {
    opened ??= discover(options).catch((error: unknown) => {
      opened = undefined;
      throw unavailable(error);
    });
    return opened;
  }

  return {
    begin: async (maxAgeMs, target = options.target) =>
      authorize(await open(), options, { maxAgeMs, target }),
    finish: async (callback, pending) => exchange(await open(), callback, pending, options.now()),
    async refresh(refreshToken, target) {
      const opened = await open();
      const { client, config } = opened;
      const ask = () => client.refreshTokenGrant(config, refreshToken, target);
      const answer = orRevoke(ask, (token) => revoke(opened, token));
      const tokens = tokensOf(await answer.catch((error: unknown) => refuse(client, error)));
      // It may keep the one that it gave before (RFC 6749, 6).
      return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken, target };
    },
    async end({ refreshToken, idToken }) {
      const opened = await open();
      if (refreshToken !== undefined) revoke(opened, refreshToken).catch(() => {});
      const { client, config } = opened;
      if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
      return client.buildEndSessionUrl(config, {
        post_logout_redirect_uri: options.signedOutUri,
        ...(idToken !== undefined && { id_token_hint: idToken }),
      }).href;
    },
  };
}

async function discover({ issuer, clientId, clientSecret, fetch }: IssuerClientOptions) {
  const client = await import('openid-client');
  const config = await client.discovery(
    new URL(issuer),
    clientId,
    // The clocks of the issuer and of this server may differ by a minute.
    { [client.clockTolerance]: clockToleranceMs / 1000 },
    authentication(client, clientId, clientSecret),
    {
      timeout: timeoutSeconds,
      [client.customFetch]: notingTokens(fetch) as never,
      // An issuer on loopback; the configuration decides which issuer is trusted.
      ...(issuer.startsWith('http:') && { execute: [client.allowInsecureRequests] }),
    },
  );
  return { client, config };
}

/** HTTP Basic, or a form where the issuer takes no other, or may not decode what Basic encodes (RFC 6749, 2.3.1). */
function authentication(
  client: typeof import('openid-client'),
  clientId: string,
  clientSecret: string,
): ClientAuth {
  const isPlain = /^[A-Za-z0-9]*$/.test(clientId + clientSecret);
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = [] } = server;
    const isForm =
      methods.includes('client_secret_post') && !(isPlain && methods.includes('client_secret_basic'));
    const authenticate = isForm ? client.ClientSecretPost : client.ClientSecretBasic;
    authenticate(clientSecret)(server, ...rest);
  };
}

type Opened = Awaited<ReturnType<typeof discover>>;

async function authorize(
  { client, config }: Opened,
  { scopes, redirectUri }: IssuerClientOptions,
  { maxAgeMs, target }: Pick<Pending, 'maxAgeMs' | 'target'>,
): Promise<{ url: string; pending: Pending }> {
  const [state, nonce, verifier] = [
    client.randomState(),
    client.randomNonce(),
    client.randomPKCECodeVerifier(),
  ];
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: scopes.join(' '),
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(maxAgeMs !== undefined && { max_age: String(Math.floor(maxAgeMs / 1000)) }),
    ...target,
  });
  return { url: url.href, pending: { state, nonce, verifier, maxAgeMs, target } };
}

/** Never awaited: what the token was for has ended here in any case, and at an unreachable issuer it expires by itself. */
async function revoke({ client, config }: Opened, token: string): Promise<void> {
  if (config.serverMetadata().revocation_endpoint !== undefined) await client.tokenRevocation(config, token);
}

function exchange(opened: Opened, callback: URL, pending: Pending, now: number): Promise<Tokens> {
  const { client, config } = opened;
  const { state, nonce, verifier, maxAgeMs, target } = pending;
  const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
  const ask = async () => {
    const asked = client.authorizationCodeGrant(
      config,
      callback,
      { ...checks, idTokenExpected: true },
      target,
    );
    const answer = await asked.catch((error: unknown) => refuse(client, error));
    const tokens = { ...tokensOf(answer), target };
    const { sub } = answer.claims() ?? {};
    const { subject_types_supported: subjects = ['public'] } = config.serverMetadata();
    // Where a person always has another `sub` for each client, the two may differ.
    if (subjects.includes('public') && (subjectOf(tokens.accessToken) ?? sub) !== sub)
      throw new DomainError('unauthorized', 'The identity provider gave the tokens of two people.');
    requireRecent(tokens, maxAgeMs, now);
    return tokens;
  };
  return orRevoke(ask, (token) => revoke(opened, token));
}

/** OpenID Connect Core 1.0, 3.1.3.7. Of an issuer that does not say when, no time counts as a sign-in (`signedInAt`). */
function requireRecent({ signedInAt }: Tokens, maxAgeMs: number | undefined, now: number): void {
  if (maxAgeMs !== undefined && signedInAt !== undefined && signedInAt < now - maxAgeMs - clockToleranceMs)
    throw new SignInRefusal('too_old', 'The person has signed in too long ago, and was not asked anew.');
}

/** Whose an access token is, where it is a JWT; its signature is verified by what takes it. */
function subjectOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')).sub;
  } catch {
    return undefined;
  }
}

function tokensOf(answer: TokenEndpointResponse & { claims?(): { auth_time?: number } | undefined }): Tokens {
  const { auth_time: seconds } = answer.claims?.() ?? {};
  return {
    signedInAt: seconds === undefined ? undefined : seconds * 1000,
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token,
    idToken: answer.id_token,
    expiresIn: answer.expires_in,
  };
}

/** An answer in OAuth's form, or one that does not belong to the sign-in, is a refusal; anything else is no answer. */
function refuse(client: typeof import('openid-client'), error: unknown): never {
  const isAnswer =
    (error instanceof client.ResponseBodyError && error.status < 500) ||
    error instanceof client.AuthorizationResponseError ||
    (error instanceof Error && 'code' in error && belongs.has(String(error.code)));
  if (!isAnswer) throw unavailable(error);
  const message = 'The identity provider did not sign you in.';
  throw issuerFault(error, 'this server') ?? new DomainError('unauthorized', message, { cause: error });
}

/** What the library throws for a callback, or an ID token, of another sign-in. */
const belongs = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
]);

function unavailable(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  const message = 'The identity provider cannot be reached at the moment.';
  return new DomainError('integration_unavailable', message, { cause: error });
}

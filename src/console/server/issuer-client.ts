/** The console as a client of the issuer: sign-in, refresh, sign-out. The first sign-in loads openid-client. */
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
  /** Sign-ins never go on without the target. */
  isTargetRequired?: boolean;
  /** Calls the issuer's endpoints: over HTTP, or in this process where the issuer is a part of it. */
  fetch: typeof fetch;
  redirectUri: string;
  signedOutUri: string;
  now(): number;
}

/** The API that requested tokens are for, as parameters of a request (RFC 8707). */
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

/** The checks of an authorization request, which the browser must bring back with its code. */
export interface SignInChecks {
  state: string;
  nonce: string;
  verifier: string;
  /** The oldest authentication that is accepted, in ms; undefined: the issuer decides. */
  maxAgeMs?: number | undefined;
  target?: Target | undefined;
}

export interface IssuerClient {
  /** Returns the issuer's URL for the browser, and the checks to keep until it returns. `maxAgeMs` as in `SignInChecks`. */
  begin(maxAgeMs: number | undefined, isPlain: boolean): Promise<{ url: string; pending: SignInChecks }>;
  /** Whether the issuer refused the target in the callback's URL, and the sign-in may begin again without it. */
  isTargetRefused(callback: URL, pending: SignInChecks): boolean;
  /** Exchanges the code in the callback's URL for tokens. Throws `unauthorized` for an invalid code. */
  finish(callback: URL, pending: SignInChecks): Promise<Tokens>;
  /** Refreshes the tokens. Throws `unauthorized` where the issuer refuses. */
  refresh(refreshToken: string, target: Target | undefined): Promise<Tokens>;
  /** Revokes the refresh token. Returns the URL of the issuer's sign-out page; undefined where it has none. */
  end(tokens: Tokens): Promise<string | undefined>;
}

export const timeoutSeconds = 10;

/** Discovery waits for the first call. Every function throws `integration_unavailable` while the issuer is unreachable. */
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
    async begin(maxAgeMs, isPlain) {
      const target = isPlain && !options.isTargetRequired ? {} : options.target;
      return authorize(await open(), options, { maxAgeMs, target });
    },
    // `invalid_target` refuses this resource only, but at Entra ID any (AADSTS9010010).
    isTargetRefused({ searchParams }, { target }) {
      const refusal = `${searchParams.get('error')} ${searchParams.get('error_description')}`;
      const isRefused = target?.resource !== undefined && /^(invalid_request |\w+ AADSTS)/.test(refusal);
      return isRefused && !options.isTargetRequired;
    },
    finish: async (callback, pending) => exchange(await open(), callback, pending, options.now()),
    async refresh(refreshToken, target) {
      const opened = await open();
      const { client, config } = opened;
      const ask = () => client.refreshTokenGrant(config, refreshToken, target);
      const answer = orRevoke(ask, (token) => revoke(opened, token));
      const tokens = tokensOf(await answer.catch((error: unknown) => refuse(client, error)));
      // Without a new refresh token, the earlier one stays valid (RFC 6749, 6).
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
      // Plain HTTP is for an issuer on loopback; the configuration decides which issuer is trusted.
      ...(issuer.startsWith('http:') && { execute: [client.allowInsecureRequests] }),
    },
  );
  return { client, config };
}

/** HTTP Basic; a form where the issuer takes only that, or may not decode what Basic encodes (RFC 6749, 2.3.1). */
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

type OpenIssuer = Awaited<ReturnType<typeof discover>>;

async function authorize(
  { client, config }: OpenIssuer,
  { scopes, redirectUri }: IssuerClientOptions,
  { maxAgeMs, target }: Pick<SignInChecks, 'maxAgeMs' | 'target'>,
): Promise<{ url: string; pending: SignInChecks }> {
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

/** Callers do not wait: the session has ended here, and a token that an unreachable issuer keeps expires by itself. */
async function revoke({ client, config }: OpenIssuer, token: string): Promise<void> {
  if (config.serverMetadata().revocation_endpoint !== undefined) await client.tokenRevocation(config, token);
}

function exchange(opened: OpenIssuer, callback: URL, pending: SignInChecks, now: number): Promise<Tokens> {
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
    // With pairwise subjects, a person's `sub` differs by client, so the two may differ.
    if (subjects.includes('public') && (subjectOf(tokens.accessToken) ?? sub) !== sub)
      throw new DomainError('unauthorized', 'The identity provider gave the tokens of two people.');
    requireRecent(tokens, maxAgeMs, now);
    return tokens;
  };
  return orRevoke(ask, (token) => revoke(opened, token));
}

/** OpenID Connect Core 1.0, 3.1.3.7. Without `auth_time` from the issuer, `signedInAt` is undefined and nothing is checked. */
function requireRecent({ signedInAt }: Tokens, maxAgeMs: number | undefined, now: number): void {
  if (maxAgeMs !== undefined && signedInAt !== undefined && signedInAt < now - maxAgeMs - clockToleranceMs)
    throw new SignInRefusal('too_old', 'The person has signed in too long ago, and was not asked anew.');
}

/** The `sub` of an access token that is a JWT. The API that accepts the token verifies its signature. */
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

/** An OAuth error and an answer to another sign-in are refusals. Any other error means that the issuer is unreachable. */
function refuse(client: typeof import('openid-client'), error: unknown): never {
  const isAnswer =
    (error instanceof client.ResponseBodyError && error.status < 500) ||
    error instanceof client.AuthorizationResponseError ||
    (error instanceof Error && 'code' in error && belongs.has(String(error.code)));
  if (!isAnswer) throw unavailable(error);
  const message = 'The identity provider did not sign you in.';
  throw issuerFault(error, 'this server') ?? new DomainError('unauthorized', message, { cause: error });
}

/** Codes of the errors that the library throws for a callback, or an ID token, of another sign-in. */
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

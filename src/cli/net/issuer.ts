/** The OpenID issuer, through openid-client: discovery, refresh, revocation. Loaded only by what needs it. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as client from 'openid-client';
import { visibleLine } from '../../domain/visible-text.ts';
import { messageOf } from '../../lib/error-message.ts';
import { CliError, failure } from '../exit.ts';
import { codeOf, describeTransport } from './transport-error.ts';
import { isSafeUrl } from './url.ts';

export interface Tokens {
  accessToken: string;
  refreshToken?: string;
  expiresAt?: string;
  scope?: string;
}

interface Client {
  issuer: string;
  clientId: string;
}

/**
 * A refresh happens under the profile's lock, which others break after 30 seconds: its two requests (the
 * issuer's metadata, the token) must have failed by then.
 */
const timeoutSeconds = 10;
/**
 * A refresh whose answer was lost with its server has used the token up, and issuers take it again for a moment at most. So it is
 * sent again at once, after these pauses, unless it took longer than this until here.
 */
const againAfterMs = [250, 750, 1_500];
const againWithinMs = 5_000;
const userAgent = `andromeda-cli (${process.platform})`;

/** Reads the issuer's metadata. `signal` reaches every later request of the configuration. */
export async function connect(
  { issuer, clientId }: Client,
  signal?: AbortSignal,
): Promise<client.Configuration> {
  // Metadata may name any address; neither tokens nor codes leave this machine in plain text.
  const guarded: client.CustomFetch = (url, options) => {
    if (!isSafeUrl(new URL(url)))
      throw failure(`The issuer names ${url}, which is plain http; nothing was sent.`);
    const signals = [options.signal, signal].filter((one) => one !== undefined);
    // The issuer shows the person which program asks.
    const headers = { ...options.headers, 'user-agent': userAgent };
    return fetch(url, { ...options, headers, body: options.body ?? null, signal: AbortSignal.any(signals) });
  };
  try {
    return await client.discovery(new URL(issuer), clientId, undefined, client.None(), {
      [client.customFetch]: guarded,
      timeout: timeoutSeconds,
      execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
    });
  } catch (error) {
    throw explain(error, issuer, signal);
  }
}

/** New tokens for a refresh token (RFC 6749 §6) and the resource it was asked for, or `refused` when only a new sign-in helps. */
export async function refreshTokens(
  who: Client,
  refreshToken: string,
  resource: string | undefined,
  now: () => number,
): Promise<Tokens | 'refused'> {
  const configuration = await connect(who);
  const parameters = resource === undefined ? {} : { resource };
  const began = performance.now();
  for (const pauseMs of [...againAfterMs, undefined]) {
    const asked = now();
    try {
      return tokensOf(await client.refreshTokenGrant(configuration, refreshToken, parameters), asked);
    } catch (error) {
      const status = refusal(error);
      if (status !== undefined && status < 500 && status !== 429) return 'refused';
      const isTooLate = pauseMs === undefined || performance.now() - began > againWithinMs;
      if (isTooLate || !isPassing(error) || wasRefused(error)) throw explain(error, who.issuer);
      await sleep(pauseMs);
    }
  }
  throw new Error('the last attempt returns or throws');
}

/** Revokes a token at the issuer (RFC 7009). Throws a sentence when that fails. */
export async function revokeToken(who: Client, token: string, hint: string): Promise<void> {
  const configuration = await connect(who);
  if (!configuration.serverMetadata().revocation_endpoint)
    throw failure(`${visibleLine(who.issuer)} offers no way to revoke it.`);
  try {
    await client.tokenRevocation(configuration, token, { token_type_hint: hint });
  } catch (error) {
    throw explain(error, who.issuer);
  }
}

/** The tokens of a response; the expiry counts from the time of the request. */
export function tokensOf(response: client.TokenEndpointResponse, asked: number): Tokens {
  const { access_token, refresh_token, expires_in, scope } = response;
  return {
    accessToken: access_token,
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(expires_in !== undefined && { expiresAt: new Date(asked + expires_in * 1000).toISOString() }),
    ...(scope !== undefined && { scope }),
  };
}

/** The HTTP status when the issuer itself refused with an OAuth error. */
function refusal(error: unknown): number | undefined {
  const isOAuthError =
    error instanceof client.ResponseBodyError || error instanceof client.WWWAuthenticateChallengeError;
  return isOAuthError ? error.status : undefined;
}

/** One sentence for whatever a request to the issuer failed with. */
export function explain(error: unknown, issuer: string, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason;
  const own = ownError(error);
  if (own) return own;
  if (error instanceof client.ResponseBodyError)
    return failure(`${issuer} refused: ${visibleLine(error.error_description ?? error.error)}.`, error);
  if (isUnreachable(error)) return describeTransport(error, new URL(issuer).origin);
  if (codeOf(error) === 'OAUTH_TIMEOUT') return failure(`${issuer} did not answer in time.`, error);
  const status = answeredStatus(error);
  if (status !== undefined)
    return failure(`${issuer} answered ${status}${status >= 500 ? '; try again later' : ''}.`, error);
  const message = messageOf(error);
  return failure(`${issuer} cannot be used: ${visibleLine(message)}.`, error);
}

/** Whether trying again may help: no connection, no answer in time, or a server in trouble (RFC 8628 §3.5). */
export function isPassing(error: unknown): boolean {
  const status = answeredStatus(error);
  if (status !== undefined) return status >= 500 || status === 429;
  return !ownError(error) && (isUnreachable(error) || codeOf(error) === 'OAUTH_TIMEOUT');
}

/** fetch reports every failure to connect as a TypeError with the system's error as its cause. */
function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError && error.cause instanceof Error;
}

/** Nobody was there who could have taken it. */
function wasRefused(error: unknown): boolean {
  return isUnreachable(error) && ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes(codeOf(error) ?? '');
}

/** The status of an answer that is not in OAuth's form; openid-client hands the response on as a cause. */
function answeredStatus(error: unknown): number | undefined {
  if (error instanceof client.ResponseBodyError) return error.status;
  return error instanceof Error && error.cause instanceof Response ? error.cause.status : undefined;
}

/** openid-client wraps what our own guard threw. */
function ownError(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error;
  return error instanceof Error && error.cause instanceof CliError ? error.cause : undefined;
}

/** Client of the OpenID issuer, by openid-client: device flow, refresh, revocation. Loaded only when needed. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as client from 'openid-client';
import { visibleLine } from '../../domain/text.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { messageOf } from '../../lib/error-message.ts';
import { issuerFault, notingTokens, orRevoke } from '../../lib/sign-in-refusal.ts';
import { isSafeUrl } from '../../lib/source-address.ts';
import { CliError, failure } from '../exit.ts';
import { codeOf, describeTransport, withoutSlash } from './request.ts';

export interface DeviceCode {
  answer: client.DeviceAuthorizationResponse;
  resource: string | undefined;
  wait(): Promise<Tokens>;
}

interface Client {
  issuer: string;
  clientId: string;
}

interface SignInRequest extends Client {
  platformUrl: string;
  scope: string;
  signal: AbortSignal;
}

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** Requests a device code from the issuer (RFC 8628 §3.1). */
export async function startDeviceFlow(request: SignInRequest): Promise<DeviceCode> {
  const configuration = await connect(request, request.signal);
  if (!configuration.serverMetadata().device_authorization_endpoint)
    throw failure(`${request.issuer} does not offer sign-in with a device code.`);
  const { protected_resources: served } = configuration.serverMetadata();
  const named = resourceOf(served, request);
  const { scope } = request;
  const ask = async (resource: string | undefined): Promise<DeviceCode> => {
    const asked = Date.now();
    const parameters = { scope, ...(resource !== undefined && { resource }) };
    const answer = await client.initiateDeviceAuthorization(configuration, parameters);
    const deadline = asked + answer.expires_in * 1000;
    return { answer, resource, wait: () => poll(configuration, { ...answer, resource }, deadline, request) };
  };
  try {
    return await ask(named).catch((error: unknown) => {
      if (served === undefined && refusesResources(error)) return ask(undefined);
      throw error;
    });
  } catch (error) {
    throw explain(error, request);
  }
}

/** `invalid_target` would mean this resource only; Microsoft Entra ID refuses every resource so (AADSTS9010010). */
function refusesResources(error: unknown): boolean {
  if (!(error instanceof client.ResponseBodyError)) return false;
  return error.error === 'invalid_request' || /^AADSTS/.test(error.error_description ?? '');
}

/**
 * The resource to request tokens for. A platform names its issuer itself: one that named another platform's issuer would get
 * tokens that the other platform accepts, unless that issuer lists the resources that it serves (RFC 9728 §4) or binds tokens
 * to the requested resource (RFC 8707). Throws when the issuer does not serve this platform.
 */
function resourceOf(served: unknown, { issuer, platformUrl }: SignInRequest): string {
  if (served === undefined) return platformUrl;
  const found = Array.isArray(served)
    ? served.find((one) => typeof one === 'string' && withoutSlash(one) === platformUrl)
    : undefined;
  if (found === undefined) throw notServed({ issuer, platformUrl });
  return found;
}

/**
 * Polls for the tokens at the interval that the issuer sets (RFC 8628 §3.4, §3.5). Replaces openid-client's own loop, which
 * ends on the first lost connection, where the RFC requires a back-off, and notices an interruption up to five seconds late.
 */
async function poll(
  configuration: client.Configuration,
  { device_code, interval = 5, resource }: client.DeviceAuthorizationResponse & Pick<DeviceCode, 'resource'>,
  deadline: number,
  request: SignInRequest,
): Promise<Tokens> {
  const { signal } = request;
  const parameters = { device_code, ...(resource !== undefined && { resource }) };
  let pause = interval;
  for (;;) {
    // The timer's own AbortError would hide the signal's reason.
    await sleep(pause * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
    const asked = Date.now();
    if (asked >= deadline) throw failure(codeExpired);
    try {
      const ask = () => client.genericGrantRequest(configuration, grantType, parameters);
      return tokensOf(await orRevoke(ask, (token, hint) => revokeUnkept(request, token, hint)), asked);
    } catch (error) {
      const code = error instanceof client.ResponseBodyError ? error.error : undefined;
      if (code === 'authorization_pending') continue;
      if (code === 'slow_down') pause += 5;
      else if (!signal.aborted && isPassing(error)) pause *= 2;
      else throw explain(error, request);
    }
  }
}

const codeExpired = 'The code has expired before anyone used it; run `andromeda auth login` again.';

function notServed({ issuer, platformUrl }: ErrorContext): Error {
  return failure(
    `${platformUrl} names ${issuer} for signing in, which does not serve that address; ask the person who gave it to you.`,
  );
}

export interface Tokens {
  accessToken: string;
  refreshToken?: string;
  expiresAt?: string;
  scope?: string;
}

const timeoutSeconds = 10;
/**
 * Pauses before retries of a refresh. If its answer was lost, the refresh token is used up, and issuers accept it again for a
 * moment at most: no retry after `againWithinMs`.
 */
const againAfterMs = [250, 750, 1_500];
const againWithinMs = 5_000;
const userAgent = `andromeda-cli (${process.platform})`;

async function connect({ issuer, clientId }: Client, signal?: AbortSignal): Promise<client.Configuration> {
  // Metadata may name any address; tokens and codes are never sent in plain text.
  const guarded: client.CustomFetch = (url, options) => {
    if (!isSafeUrl(new URL(url)))
      throw failure(`The issuer names ${url}, which is plain http; nothing was sent.`);
    const signals = [options.signal, signal].filter((one) => one !== undefined);
    // The issuer shows the person which program requests the sign-in.
    const headers = { ...options.headers, 'user-agent': userAgent };
    return fetch(url, { ...options, headers, body: options.body ?? null, signal: AbortSignal.any(signals) });
  };
  try {
    const tolerance = { [client.clockTolerance]: clockToleranceMs / 1000 };
    return await client.discovery(new URL(issuer), clientId, tolerance, client.None(), {
      [client.customFetch]: notingTokens(guarded),
      timeout: timeoutSeconds,
      execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
    });
  } catch (error) {
    throw explain(error, { issuer, signal });
  }
}

/** Refreshes tokens (RFC 6749 §6) for the resource they were requested for; `refused` when only a new sign-in helps. */
export async function refreshTokens(
  who: Client,
  refreshToken: string,
  resource: string | undefined,
): Promise<Tokens | 'refused'> {
  const configuration = await connect(who);
  const parameters = resource === undefined ? undefined : { resource };
  const began = performance.now();
  for (const pauseMs of [...againAfterMs, undefined]) {
    const asked = Date.now();
    try {
      const ask = () => client.refreshTokenGrant(configuration, refreshToken, parameters);
      return tokensOf(await orRevoke(ask, (token, hint) => revokeUnkept(who, token, hint)), asked);
    } catch (error) {
      const status = refusal(error);
      if (status !== undefined && status < 500 && status !== 429) return 'refused';
      const isTooLate = pauseMs === undefined || performance.now() - began > againWithinMs;
      if (isTooLate || !isPassing(error) || wasRefused(error)) throw explain(error, who);
      await sleep(pauseMs);
    }
  }
  throw new Error('the last attempt returns or throws');
}

/** Revokes a token at the issuer (RFC 7009). Throws a sentence on failure. */
export async function revokeToken(
  who: Client,
  token: string,
  hint: string,
  signal?: AbortSignal,
): Promise<void> {
  const configuration = await connect(who, signal);
  if (!configuration.serverMetadata().revocation_endpoint)
    throw failure(`${visibleLine(who.issuer)} offers no way to revoke it.`);
  try {
    await client.tokenRevocation(configuration, token, { token_type_hint: hint });
  } catch (error) {
    throw explain(error, who);
  }
}

/** Revokes tokens that no session was made of. Only the end of the process waits for it, for at most 3 seconds. */
export function revokeUnkept(who: Client, token: string, hint: string): Promise<void> {
  return revokeToken(who, token, hint, AbortSignal.timeout(3_000));
}

/** Converts a token response; `expires_in` counts from `asked`, the time of the request. */
function tokensOf(response: client.TokenEndpointResponse, asked: number): Tokens {
  const { access_token, refresh_token, expires_in, scope } = response;
  return {
    accessToken: access_token,
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(expires_in !== undefined && { expiresAt: new Date(asked + expires_in * 1000).toISOString() }),
    ...(scope !== undefined && { scope }),
  };
}

/** The HTTP status if the issuer refused with an OAuth error. */
function refusal(error: unknown): number | undefined {
  const isOAuthError =
    error instanceof client.ResponseBodyError || error instanceof client.WWWAuthenticateChallengeError;
  return isOAuthError ? error.status : undefined;
}

interface ErrorContext {
  issuer: string;
  platformUrl?: string;
  signal?: AbortSignal | undefined;
}

function explain(error: unknown, { issuer, platformUrl, signal }: ErrorContext): unknown {
  if (signal?.aborted) return signal.reason;
  const own = ownError(error);
  if (own) return own;
  if (error instanceof client.ResponseBodyError) {
    if (platformUrl && error.error === 'invalid_target') return notServed({ issuer, platformUrl });
    if (error.error === 'access_denied') return failure('Sign-in was denied.');
    if (error.error === 'expired_token') return failure(codeExpired);
    return failure(`${issuer} refused: ${visibleLine(error.error_description ?? error.error)}.`, error);
  }
  if (isUnreachable(error)) return describeTransport(error, new URL(issuer).origin);
  if (codeOf(error) === 'OAUTH_TIMEOUT') return failure(`${issuer} did not answer in time.`, error);
  const status = answeredStatus(error);
  if (status !== undefined)
    return failure(`${issuer} answered ${status}${status >= 500 ? '; try again later' : ''}.`, error);
  const fault = issuerFault(error, 'this machine');
  if (fault) return failure(fault.message, error);
  return failure(`${issuer} cannot be used: ${visibleLine(messageOf(error))}.`, error);
}

/** Whether a retry may help: no connection, a timeout, or a server error (RFC 8628 §3.5). */
function isPassing(error: unknown): boolean {
  const status = answeredStatus(error);
  if (status !== undefined) return status >= 500 || status === 429;
  return !ownError(error) && (isUnreachable(error) || codeOf(error) === 'OAUTH_TIMEOUT');
}

/** fetch reports every connection failure as a TypeError with the system's error as its cause. */
function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError && error.cause instanceof Error;
}

/** Whether no server received the request: connection refused, or host name not resolved. */
function wasRefused(error: unknown): boolean {
  return isUnreachable(error) && ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes(codeOf(error) ?? '');
}

/** The status of a response that is no OAuth error; openid-client attaches the response as the cause. */
function answeredStatus(error: unknown): number | undefined {
  if (error instanceof client.ResponseBodyError) return error.status;
  return error instanceof Error && error.cause instanceof Response ? error.cause.status : undefined;
}

/** Our own error, which openid-client may have wrapped. */
function ownError(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error;
  return error instanceof Error && error.cause instanceof CliError ? error.cause : undefined;
}

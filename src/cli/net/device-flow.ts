/** OAuth 2.0 Device Authorization Grant, RFC 8628. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as client from 'openid-client';
import { failure } from '../exit.ts';
import { connect, explain, isPassing, type Tokens, tokensOf } from './issuer.ts';
import { withoutSlash } from './url.ts';

export interface DeviceCode {
  userCode: string;
  verificationUri: string;
  verificationUriComplete?: string;
  /** What the tokens will be for, as the issuer calls it. */
  resource: string;
  /** Resolves to the tokens once the person has agreed. */
  wait(): Promise<Tokens>;
}

interface Request {
  issuer: string;
  platformUrl: string;
  clientId: string;
  scope: string;
  now: () => number;
  signal: AbortSignal;
}

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** Asks the issuer for a code (RFC 8628 §3.1). */
export async function startDeviceFlow(request: Request): Promise<DeviceCode> {
  const configuration = await connect(request, request.signal);
  if (!configuration.serverMetadata().device_authorization_endpoint)
    throw failure(`${request.issuer} does not offer sign-in with a device code.`);
  const resource = resourceOf(configuration.serverMetadata().protected_resources, request);
  const asked = request.now();
  try {
    const answer = await client.initiateDeviceAuthorization(configuration, {
      scope: request.scope,
      resource,
    });
    const { verification_uri_complete: complete } = answer;
    return {
      userCode: answer.user_code,
      verificationUri: answer.verification_uri,
      resource,
      ...(complete !== undefined && { verificationUriComplete: complete }),
      wait: () => poll(configuration, { ...answer, resource }, asked + answer.expires_in * 1000, request),
    };
  } catch (error) {
    if (codeOf(error) === 'invalid_target') throw notServed(request);
    throw explain(error, request.issuer, request.signal);
  }
}

/**
 * What tokens for this platform are for. A platform names its issuer itself: one that named somebody else's would get
 * tokens that open theirs, unless that issuer says whom it serves (RFC 9728 §4) or binds tokens to what they were asked
 * for (RFC 8707). Throws where the issuer does not serve this platform.
 */
function resourceOf(served: unknown, { issuer, platformUrl }: Request): string {
  if (served === undefined) return platformUrl;
  const found = Array.isArray(served)
    ? served.find((one) => typeof one === 'string' && withoutSlash(one) === platformUrl)
    : undefined;
  if (found === undefined) throw notServed({ issuer, platformUrl });
  return found;
}

/**
 * Asks for the tokens at the pace the issuer sets (RFC 8628 §3.4, §3.5). openid-client's own loop is not used:
 * it ends on the first lost connection, where the RFC has the client slow down and go on, and it notices an
 * interruption up to five seconds late.
 */
async function poll(
  configuration: client.Configuration,
  answer: client.DeviceAuthorizationResponse & { resource: string },
  deadline: number,
  { issuer, platformUrl, now, signal }: Request,
): Promise<Tokens> {
  let interval = answer.interval ?? 5;
  for (;;) {
    await pause(interval * 1000, signal);
    const asked = now();
    if (asked >= deadline) throw expired();
    try {
      const parameters = { device_code: answer.device_code, resource: answer.resource };
      return tokensOf(await client.genericGrantRequest(configuration, grantType, parameters), asked);
    } catch (error) {
      switch (codeOf(error)) {
        case 'authorization_pending':
          break;
        case 'slow_down':
          interval += 5;
          break;
        case 'access_denied':
          throw failure('Sign-in was denied.');
        case 'expired_token':
          throw expired();
        case 'invalid_target':
          throw notServed({ issuer, platformUrl });
        default:
          if (signal.aborted || !isPassing(error)) throw explain(error, issuer, signal);
          interval *= 2;
      }
    }
  }
}

/** The issuer's OAuth error code. */
function codeOf(error: unknown): string | undefined {
  return error instanceof client.ResponseBodyError ? error.error : undefined;
}

function notServed({ issuer, platformUrl }: Pick<Request, 'issuer' | 'platformUrl'>): Error {
  return failure(
    `${platformUrl} names ${issuer} for signing in, which does not serve that address; ask whoever gave it to you.`,
  );
}

function expired(): Error {
  return failure('The code has expired before anyone used it; run `andromeda auth login` again.');
}

/** The timer's own abort error hides the reason. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => signal.throwIfAborted());
}

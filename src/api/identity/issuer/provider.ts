/** Creates the configured oidc-provider without its console output. Loaded lazily, with everything that imports oidc-provider. */
import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import Provider, { type KoaContextWithOIDC } from 'oidc-provider';
import { DomainError } from '../../../domain/error.ts';
import type { Limit, Limits } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { noteRefusal } from '../../../lib/response.ts';
import { createRotation, nameSuccessors } from './adapter.ts';
import { type ConfigurationOptions, configuration } from './configuration.ts';
import { remoteAddress, retryHeaders } from './pages.ts';

export function createProvider({
  url,
  log,
  limits,
  ...rest
}: Omit<ConfigurationOptions, 'rotation' | 'origin'> & {
  url: URL;
  log: Logger;
  limits: Limits;
}): Provider {
  const rotation = createRotation(rest.keys.cookie, () => Provider.ctx);
  const provider = new Provider(url.origin, configuration({ ...rest, rotation, origin: url.origin }));
  nameSuccessors(provider, rotation);
  // With an https URL and a plain socket, a proxy does TLS, and URLs in responses must be https. The headers that the
  // library reads for that were written by `pinToIssuer`, never by the caller.
  provider.proxy = url.protocol === 'https:';
  // Handles errors outside the library's own handlers, which report theirs as `server_error`.
  provider.use(async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      log.error('issuer.request.failed', { error });
      answerUnavailable(ctx, error);
    }
  });
  provider.use(pollingMiddleware(limits));
  logEvents(provider, log);
  return provider;
}

function logEvents(provider: Provider, log: Logger): void {
  // Without a listener, Koa prints the error. (The event is Koa's, so the library's types lack it.)
  const koa: EventEmitter = provider;
  koa.on('error', (error) => log.error('issuer.request.failed', { error }));
  provider.on('server_error', (ctx, error) => {
    log.error('issuer.request.failed', { error });
    // The library's own text, "oops! something went wrong", does not help a client.
    if (isUnavailable(error)) answerUnavailable(ctx, error);
  });
  provider.on('grant.revoked', (ctx: KoaContextWithOIDC, grantId: string) => {
    const clientId = ctx.oidc.client?.clientId;
    // Either the terminal signed out, or a code or token was used twice and may be stolen.
    if (ctx.path === '/token')
      log.warn('issuer.token.reused', { clientId, grantId, address: remoteAddress(ctx.req) });
    else log.info('issuer.signed_out', { clientId, grantId });
  });
}

function isUnavailable(error: unknown): error is DomainError {
  return error instanceof DomainError && error.code === 'service_unavailable';
}

function answerUnavailable(
  ctx: Pick<KoaContextWithOIDC, 'status' | 'body' | 'set'>,
  { message }: DomainError,
): void {
  ctx.status = 503;
  ctx.set(retryHeaders);
  ctx.body = { error: 'temporarily_unavailable', error_description: message };
}

/** Seconds between two polls, as in the device authorization response (section 3.2). */
const pollInterval = 5;
/** Tolerance for networks and timers: a device that waits five seconds may arrive slightly earlier. */
const toleranceMs = 500;

const spacingMs = pollInterval * 1000 - toleranceMs;
const polls: Limit = {
  name: 'polls of device',
  backOff: { free: 1, firstMs: spacingMs, mostMs: spacingMs, forgetMs: 10 * 60_000 },
};

/** Counts a poll; true if the device code's previous poll was less than the interval ago. */
function isTooSoon(limits: Limits, deviceCode: string): Promise<boolean> {
  const key = createHash('sha256').update(deviceCode).digest('base64url');
  return limits.change({ poll: { limit: polls, key } }, ({ poll }) => {
    const tooSoon = poll.waitMs() > 0;
    poll.use();
    return tooSoon;
  });
}

/**
 * Middleware around the library: adds `interval` to the device authorization response, and answers "slow_down" to devices
 * that poll too often (RFC 8628, section 3.5), which oidc-provider never does. Only responses of `authorization_pending`
 * are counted, so that a guessed device code takes no memory and an approved one is never delayed.
 */
function pollingMiddleware(limits: Limits) {
  return async (ctx: KoaContextWithOIDC, next: () => Promise<unknown>): Promise<void> => {
    await next();
    const body: unknown = ctx.body;
    if (typeof body !== 'object' || body === null) return;
    if ('device_code' in body) ctx.body = { ...body, interval: pollInterval };
    if (!('error' in body)) return;
    // Polling until a person approves is normal and not logged as a refusal.
    if (body.error !== 'authorization_pending') return noteRefusal(ctx.res, `${ctx.path}: ${body.error}`);
    const deviceCode = ctx.oidc.params?.device_code;
    if (typeof deviceCode !== 'string' || !(await isTooSoon(limits, deviceCode))) return;
    const error_description = `Wait at least ${pollInterval} seconds between two requests.`;
    ctx.body = { error: 'slow_down', error_description };
  };
}

/** The library, set up and quiet. Loaded lazily, with everything that imports oidc-provider. */
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
  // Where the URL is https and the socket is not, a proxy does TLS, and the addresses in answers must say https. The
  // headers it reads are the ones that `pinToIssuer` wrote, never the caller's.
  provider.proxy = url.protocol === 'https:';
  // For errors outside the library's own handlers, which report theirs as `server_error`.
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
  // Koa would print it. (Its own event, which the library's types leave out.)
  const koa: EventEmitter = provider;
  koa.on('error', (error) => log.error('issuer.request.failed', { error }));
  provider.on('server_error', (ctx, error) => {
    log.error('issuer.request.failed', { error });
    // The library knows no better than "oops! something went wrong", on which a client cannot act.
    if (isUnavailable(error)) answerUnavailable(ctx, error);
  });
  provider.on('grant.revoked', (ctx: KoaContextWithOIDC, grantId: string) => {
    const clientId = ctx.oidc.client?.clientId;
    // Either the terminal signed out, or a code or token was used twice: then it may be stolen.
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

/** Seconds between two polls, as the device authorization response names them (section 3.2). */
const pollInterval = 5;
/** Networks and timers are not exact: a device that waits five seconds may be seen after a little less. */
const toleranceMs = 500;

const spacingMs = pollInterval * 1000 - toleranceMs;
const polls: Limit = {
  name: 'polls of device',
  backOff: { free: 1, firstMs: spacingMs, mostMs: spacingMs, forgetMs: 10 * 60_000 },
};

/** Whether a device code was polled less than the interval ago; counts this poll. */
function isTooSoon(limits: Limits, deviceCode: string): Promise<boolean> {
  const key = createHash('sha256').update(deviceCode).digest('base64url');
  return limits.change({ poll: { limit: polls, key } }, ({ poll }) => {
    const tooSoon = poll.waitMs() > 0;
    poll.use();
    return tooSoon;
  });
}

/**
 * Middleware around the library: adds `interval` to the device authorization response, and answers "slow_down" to devices that ask
 * too often (RFC 8628, section 3.5), which oidc-provider never does. Only answers of `authorization_pending` are counted, so a
 * guessed device code takes no memory here and an approved one is never held back.
 */
function pollingMiddleware(limits: Limits) {
  return async (ctx: KoaContextWithOIDC, next: () => Promise<unknown>): Promise<void> => {
    await next();
    const body: unknown = ctx.body;
    if (typeof body !== 'object' || body === null) return;
    if ('device_code' in body) ctx.body = { ...body, interval: pollInterval };
    if (!('error' in body)) return;
    // What clients ask again and again until a person has approved is no refusal.
    if (body.error !== 'authorization_pending') return noteRefusal(ctx.res, `${ctx.path}: ${body.error}`);
    const deviceCode = ctx.oidc.params?.device_code;
    if (typeof deviceCode !== 'string' || !(await isTooSoon(limits, deviceCode))) return;
    const error_description = `Wait at least ${pollInterval} seconds between two requests.`;
    ctx.body = { error: 'slow_down', error_description };
  };
}

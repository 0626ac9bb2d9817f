/** The library, set up and quiet. Loaded lazily, with everything that imports oidc-provider. */
import type { EventEmitter } from 'node:events';
import type { KoaContextWithOIDC } from 'oidc-provider';
import Provider from 'oidc-provider';
import { DomainError } from '../../../domain/error.ts';
import type { Limits } from '../../../lib/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { type ConfigurationOptions, configuration } from './configuration.ts';
import { pollingMiddleware } from './device/polling.ts';
import { remoteAddress } from './request.ts';
import { retryHeaders } from './respond.ts';
import { createRotation, nameSuccessors } from './rotation.ts';

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
  provider.use(rest.cors.middleware);
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

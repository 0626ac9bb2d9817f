/** A part of the composition root: the web console, with the two APIs and the issuer as it needs them. */
import { fetchWithin } from '../../api/http/fetch-within.ts';
import { type Console, createConsole } from '../../console/server/index.ts';
import { signInMs } from '../../domain/access/lapse.ts';
import { consoleFiles } from '../../lib/packaging.ts';
import { findLeastSignInHours } from '../../store/people/people.ts';
import type { Config } from '../config/index.ts';
import type { Apis } from './apis.ts';
import type { Parts } from './parts.ts';

type ConsoleParts = { apis: Apis } & Pick<
  Parts,
  'config' | 'store' | 'issuer' | 'proxies' | 'downloads' | 'keys' | 'log' | 'now' | 'uptime'
>;

export function startConsole(parts: ConsoleParts): Console {
  const { config, store, apis, issuer, proxies, downloads, log, now, uptime } = parts;
  const { identity } = config;
  if (!config.console || !issuer.console) throw new Error('the console has no client at the issuer');
  let files: ReturnType<typeof consoleFiles> | undefined;
  return createConsole({
    url: config.console.url,
    store,
    apis,
    issuer: {
      issuer: issuer.url,
      clientId: issuer.console.clientId,
      clientSecret: issuer.console.secret,
      scopes: scopesOf(config),
      // Tokens of the embedded issuer are all for the platform.
      target:
        issuer.handle || identity.resourceParameter === 'never' ? {} : { resource: config.platform.url },
      isTargetRequired: identity.resourceParameter === 'always',
      // The embedded issuer's address may be one that only people can reach.
      fetch: issuer.handle ? fetchWithin(issuer.handle) : fetch,
    },
    authenticate: (authorization) => apis.authenticate(authorization, 'unauthorized'),
    files() {
      files ??= consoleFiles().catch((error: unknown) => {
        files = undefined;
        throw error;
      });
      return files;
    },
    downloads: { owns: downloads.owns, handle: downloads.at(config.console.url) },
    proxies,
    async maxAgeMs() {
      return signInMs(store.lapses.policy, await findLeastSignInHours(store.read));
    },
    consoleSecret: parts.keys.consoleSecret,
    log,
    now,
    uptime,
  });
}

/**
 * The scopes that any client requests (contract, "Authentication" 4), without offline access: the console's sessions
 * are shorter than the issuer's, and an offline token would outlive them.
 */
function scopesOf({ identity }: Config): readonly string[] {
  const audiences = identity.audiences.map((one) => `urn:zitadel:iam:org:project:id:${one}:aud`);
  const asked = identity.scopes ?? ['openid', 'profile', 'email', ...audiences];
  return identity.console?.scopes ?? asked.filter((one) => one !== 'offline_access');
}

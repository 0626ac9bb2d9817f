/** A part of the composition root: the issuer of tokens, external or embedded. */
import { isDeepStrictEqual } from 'node:util';
import { createLocalJWKSet } from 'jose';
import { issuerKeysOf, publicKeys } from '../../api/identity/issuer/keys.ts';
import { hashNewPassword } from '../../api/identity/password.ts';
import { createRemoteIssuer, trustAuthority } from '../../api/identity/remote-issuer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Store } from '../../store/engine/index.ts';
import { findPassword, setPassword } from '../../store/people/identities.ts';
import { findPersonByEmail } from '../../store/people/people.ts';
import { createSharedLimits } from '../../store/servers/limit-counts.ts';
import type { Config } from '../config/index.ts';
import type { Parts, TokenIssuer } from './parts.ts';
import type { Peers } from './peers/peers.ts';

/**
 * Sets passwords at the embedded issuer for people who have none yet. One after the other: a hash that waits in the
 * queue is refused after some seconds, which a slow machine needs for one password.
 */
export async function setPasswords(store: Store, passwords: ReadonlyMap<string, string>): Promise<void> {
  for (const [email, password] of passwords) {
    const user = await findPersonByEmail(store.read, email);
    // Setting a password again would end the sessions that it opened.
    if (!user || (await findPassword(store.read, email))) continue;
    const hash = await hashNewPassword(password, { email });
    await store.write((tx) => setPassword(tx, { userId: user.id, hash }));
  }
}

type IssuerDeps = Pick<Parts, 'keys' | 'store' | 'proxies' | 'log'> & {
  peers: Pick<Peers, 'forOthers'>;
  clock: Clock;
};

export async function startIssuer(config: Config, deps: IssuerDeps): Promise<TokenIssuer> {
  const { issuer, scopes, console } = config.identity;
  if (issuer === undefined) return startEmbedded(config, deps);
  trustAuthority(config.identity.ca);
  return {
    url: issuer,
    scopes,
    handle: undefined,
    console: console && { clientId: console.clientId, secret: console.clientSecret },
    isSignInOver: undefined,
    passwordLink: undefined,
    tokenType: undefined,
    ...createRemoteIssuer(issuer),
  };
}

async function startEmbedded(
  config: Config,
  { keys, store, peers, proxies, log, clock }: IssuerDeps,
): Promise<TokenIssuer> {
  const { identity, platform, business } = config;
  const { url } = identity.embedded;
  // Loaded only where it is used: an installation with an external issuer never pays for it.
  const { createIssuer } = await import('../../api/identity/issuer/index.ts');
  const issuer = await createIssuer({
    url,
    store,
    keys: issuerKeysOf(keys.of('issuer')),
    audience: identity.audiences[0] ?? 'andromeda',
    cliClientId: identity.cliClientId,
    ...(identity.kubernetes ? { kubernetesClientId: identity.kubernetes.clientId } : {}),
    ...(config.console ? { consoleUrl: config.console.url } : {}),
    resources: [platform.url, business.url],
    secondFactor: identity.secondFactor,
    proxies,
    limits: peers.forOthers(() => createSharedLimits(store)),
    log,
    clock,
  });
  let { jwks } = issuer;
  let verifying = createLocalJWKSet(jwks);
  return {
    handle: issuer.handle,
    console: config.console && issuer.console,
    url,
    keys: (...asked) => verifying(...asked),
    refreshKeys() {
      const next = issuerKeysOf(keys.of('issuer'));
      if (isDeepStrictEqual(publicKeys(next), jwks)) return;
      issuer.useKeys(next);
      jwks = issuer.jwks;
      verifying = createLocalJWKSet(jwks);
    },
    tokenType: 'at+jwt',
    isSignInOver: issuer.isSignInOver,
    passwordLink: issuer.passwordLink,
    userinfo: async () => ({}),
    offersOffline: async () => true,
    scopes: identity.scopes ?? ['openid', 'profile', 'email', 'offline_access'],
    warm: () => issuer.warm(),
  };
}

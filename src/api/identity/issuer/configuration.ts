/** The configuration of oidc-provider. Every callback that has a default is set, since the defaults print notices. */
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Store } from '../../../store/engine/index.ts';
import { claimOfGeneration, claimsOf, findSignedIn, generationOf } from './accounts.ts';
import { createAdapter, type Rotation } from './adapter.ts';
import { apiResource, clientMetadata, type IssuerClient, scopes } from './clients.ts';
import { accessTokenSeconds, type IssuerKeys, idTokenSeconds } from './keys.ts';
import { errorPage, pageHeaders, remoteAddress } from './pages.ts';

const minute = 60;
const day = 24 * 60 * minute;

/** In seconds. */
const lifetimes = {
  AccessToken: accessTokenSeconds,
  AuthorizationCode: minute,
  DeviceCode: 10 * minute,
  /** The grant's end is the session's absolute limit; the refresh token's is its limit of inactivity. */
  Grant: 180 * day,
  RefreshToken: 30 * day,
  IdToken: idTokenSeconds,
  Interaction: 10 * minute,
  Session: day,
};

/** RP-initiated logout, with a page of ours (authorization.ts). */
export const endSessionPath = '/session/end';

export interface ConfigurationOptions {
  store: Store;
  keys: IssuerKeys;
  clients: IssuerClient[];
  audience: string;
  resources: readonly string[];
  rotation: Rotation;
  origin: string;
}

export function configuration(options: ConfigurationOptions): Configuration {
  const { store, keys, clients, audience, resources, rotation, origin } = options;
  const hasWeb = clients.some((client) => client.web);
  const alreadyUsed = () => new errors.InvalidGrant('already used');
  return {
    adapter: (model: string) => createAdapter({ store, rotation, alreadyUsed }, model),
    jwks: { keys: keys.signing } as NonNullable<Configuration['jwks']>,
    cookies: { keys: [keys.cookie] },
    clients: clients.map(clientMetadata),
    clientAuthMethods: hasWeb ? ['none', 'client_secret_basic'] : ['none'],
    clientBasedCORS: () => false,
    // A client checks here that the address it was given is one of ours (RFC 9728, section 4).
    discovery: {
      protected_resources: resources,
      ...(hasWeb && { end_session_endpoint: `${origin}${endSessionPath}` }),
    },
    responseTypes: hasWeb ? ['code'] : [],
    scopes,
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'preferred_username'],
    },
    // Includes the email in the ID token, for clients that read nothing else (kubectl).
    conformIdTokenClaims: false,
    async findAccount(_ctx, sub, token) {
      const account = await findSignedIn(store.read, sub, token && generationOf(token));
      return account && { accountId: account.userId, claims: async () => claimsOf(account) };
    },
    async extraTokenClaims(ctx, token) {
      // An opaque token (no audience) is looked up in the store, not parsed.
      if (!('aud' in token) || !token.aud || !('accountId' in token)) return undefined;
      const account = await findSignedIn(store.read, token.accountId);
      if (!account) return undefined;
      const { sub: _sub, ...claims } = claimsOf(account);
      return { ...claims, ...claimOfGeneration(token), ...claimOfSignIn(ctx.oidc.entities) };
    },
    // A person who approved expects to stay signed in, even if the client did not request offline_access.
    issueRefreshToken: async () => true,
    // Public clients: every refresh token is good for one use (adapter.ts).
    rotateRefreshToken: true,
    expiresWithSession: async () => false,
    ttl: lifetimes,
    features: features({ clients, audience, resources }),
    async renderError(ctx, out) {
      ctx.set(pageHeaders);
      ctx.body = errorPage(out.error, out.error_description);
    },
  };
}

/** The time of the person's sign-in, which a refresh does not change (RFC 9068, 2.2.1). */
function claimOfSignIn(entities: KoaContextWithOIDC['oidc']['entities']): { auth_time?: number } {
  const { RefreshToken, DeviceCode, AuthorizationCode } = entities;
  const authTime = (RefreshToken ?? DeviceCode ?? AuthorizationCode)?.authTime;
  return authTime === undefined ? {} : { auth_time: authTime };
}

/** Enabled features of the library, apart from the device flow's pages: as few as clients need. */
function features({
  clients,
  audience,
  resources,
}: Pick<ConfigurationOptions, 'clients' | 'audience' | 'resources'>): Configuration['features'] {
  const callsApis = (clientId: string | undefined) =>
    clients.some((client) => client.id === clientId && client.callsApis);
  return {
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    clientCredentials: { enabled: false },
    introspection: { enabled: false },
    registration: { enabled: false },
    userinfo: { enabled: true },
    revocation: {
      enabled: true,
      allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId,
    },
    deviceFlow: { enabled: true, charset: 'base-20', mask: '****-****', deviceInfo },
    resourceIndicators: {
      enabled: true,
      defaultResource: async (_ctx, client) => (callsApis(client.clientId) ? apiResource : []),
      useGrantedResource: async () => true,
      async getResourceServerInfo(_ctx, resource, client) {
        const isOurs = resource === apiResource || resources.includes(resource);
        if (!isOurs || !callsApis(client.clientId)) throw new errors.InvalidTarget();
        return {
          scope: scopes.join(' '),
          audience,
          accessTokenTTL: accessTokenSeconds,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        };
      },
    },
  };
}

/** The address and program of the requesting device, for the approval page. The device chose the text, so its length is cut. */
function deviceInfo(ctx: KoaContextWithOIDC): { ip: string; ua: string } {
  return { ip: remoteAddress(ctx.req), ua: ctx.get('user-agent').slice(0, 200) };
}

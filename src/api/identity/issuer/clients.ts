/**
 * The OAuth clients, all our own: public clients (RFC 8252) that use only the device flow, and the web console, which
 * has a secret and uses the authorization code flow.
 */
import type { ClientMetadata } from 'oidc-provider';
import { invalidState } from '../../../domain/error.ts';
import { isId } from '../../../domain/id.ts';

const deviceCodeGrant = 'urn:ietf:params:oauth:grant-type:device_code';

/** All supported scopes; others in a request are dropped. */
export const scopes = ['openid', 'offline_access', 'email', 'profile'];

/** The resource (RFC 8707) of both APIs: the library requires an absolute URI for the tokens' audience. */
export const apiResource = 'urn:andromeda:apis';

export interface IssuerClient {
  id: string;
  name: string;
  meaning: string;
  callsApis: boolean;
  /** Scopes that are always granted, requested or not. */
  always: string[];
  web?: WebClient;
}

export interface WebClient {
  secret: string;
  redirectUri: string;
  signedOutUri: string;
}

export const consoleClientId = 'andromeda-console';

/** The console's redirect addresses for its URL (src/console/server/index.ts). */
export function consoleAddresses(url: string): Omit<WebClient, 'secret'> {
  return { redirectUri: `${url}/sign-in/callback`, signedOutUri: `${url}/signed-out` };
}

const actsAsYou = 'It will act as you in Andromeda, with all your permissions,';

/** The clients of an installation. Throws `invalid_state` for a client ID that is used twice or could be a person's. */
export function issuerClients(
  cliClientId: string,
  kubernetesClientId: string | undefined,
  web?: WebClient,
): IssuerClient[] {
  requireOwnIds(cliClientId, kubernetesClientId);
  const callsApis = { callsApis: true, always: ['openid'] };
  const clients = [
    {
      id: cliClientId,
      name: 'Andromeda command line',
      meaning: `${actsAsYou} until you sign it out.`,
      ...callsApis,
    },
    kubernetesClientId !== undefined && {
      id: kubernetesClientId,
      name: 'kubectl',
      meaning: 'It will act as you on the Kubernetes clusters that you have access to.',
      callsApis: false,
      // The API server reads the user's name from the ID token, and kubeconfigs rarely request more than openid.
      always: ['openid', 'email'],
    },
    web && {
      id: consoleClientId,
      name: 'the Andromeda console',
      meaning: `${actsAsYou} until you sign out.`,
      ...callsApis,
      web,
    },
  ].filter((one) => one !== false && one !== undefined);
  // A token whose subject equals its client counts as a service account's.
  const taken = clients.find(({ id }) => isId('user', id));
  if (taken) throw invalidState(`${taken.id} is the ID of a user, not of a client.`);
  return clients;
}

function requireOwnIds(cliClientId: string, kubernetesClientId: string | undefined): void {
  if (cliClientId === kubernetesClientId)
    throw invalidState('identity.cliClientId and identity.kubernetes.clientId are the same.');
  if ([cliClientId, kubernetesClientId].includes(consoleClientId))
    throw invalidState(`${consoleClientId} is the client ID of the web console; choose another.`);
}

/** The granted scopes: those requested that exist, and those that the client always gets. */
export function grantedScopes(client: IssuerClient, requested: string): string[] {
  const asked = new Set([...requested.split(' '), ...client.always]);
  return scopes.filter((scope) => asked.has(scope));
}

export function clientMetadata({ id, name, web }: IssuerClient): ClientMetadata {
  if (web) {
    return {
      client_id: id,
      client_name: name,
      client_secret: web.secret,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [web.redirectUri],
      token_endpoint_auth_method: 'client_secret_basic',
    };
  }
  return {
    client_id: id,
    client_name: name,
    application_type: 'native',
    grant_types: [deviceCodeGrant, 'refresh_token'],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: 'none',
  };
}

/** The two APIs as Express applications, each with exactly what its operations need. */
import type { RequestListener } from 'node:http';
import * as businessOperations from '../../api/business/index.ts';
import type { InstallationView } from '../../api/business/operation.ts';
import { createApi } from '../../api/http/api.ts';
import { loadDocument } from '../../api/http/document.ts';
import { createGroups, type TakeGroups } from '../../api/identity/groups.ts';
import { createAuthenticator } from '../../api/identity/index.ts';
import { hashNewPassword } from '../../api/identity/password.ts';
import * as platformOperations from '../../api/platform/index.ts';
import { DomainError } from '../../domain/error.ts';
import { allKeys } from '../../domain/key-rotation.ts';
import { createReadinessCheck } from '../../store/engine/readiness.ts';
import { refusalOfFile } from '../config/secret-files.ts';
import { checkCluster, surveyCluster } from './drivers.ts';
import { createInstallationView } from './installation-state.ts';
import type { Parts } from './parts.ts';
import { closedByOperator } from './peers/sessions.ts';

type ApiParts = Omit<Parts, 'uptime'>;

type Authenticate = ReturnType<typeof createAuthenticator>;

export interface Apis {
  business: RequestListener;
  platform: RequestListener;
  authenticate: Authenticate;
}

export function createApis(parts: ApiParts): Apis {
  const { config, store, issuer, now } = parts;
  let saysSignInTime = true;
  const authenticate = createAuthenticator({
    store,
    rules: {
      issuer: issuer.url,
      audiences: config.identity.audiences,
      type: issuer.tokenType,
      trustEmail: config.identity.trustEmail,
      serviceAccountClaim: config.identity.serviceAccountClaim,
    },
    keys: issuer.keys,
    userinfo: issuer.userinfo,
    isSignInOver: issuer.isSignInOver,
    onNoSignInTime() {
      saysSignInTime = false;
    },
    takeGroups: takeGroupsOf(parts),
    markIdentity: parts.audit.markIdentity,
    now,
  });
  const installation = createInstallationView({ ...parts, saysSignInTime: () => saysSignInTime });
  // Created once for both APIs: they share the row that readiness writes.
  const common = commonOptions(parts);
  return {
    business: createBusinessApi(parts, { common, authenticate, installation }),
    platform: createPlatformApi(parts, common, authenticate),
    authenticate,
  };
}

function takeGroupsOf({ config, store, issuer, log, now }: ApiParts): TakeGroups | undefined {
  const { groups, cliClientId } = config.identity;
  if (!groups) return undefined;
  const { userinfo } = issuer;
  const onFault = (userId: string, fault: string) => log.warn('groups.refused', { userId, message: fault });
  return createGroups({ ...groups, store, cliClientId, userinfo, onFault, now });
}

function createBusinessApi(
  parts: ApiParts,
  made: { common: CommonOptions; authenticate: Authenticate; installation: InstallationView },
): RequestListener {
  const { common, authenticate, installation } = made;
  const { config, store, issuer, keys, gateway, gateways, audit, now } = parts;
  const lines = (kind: 'host' | 'client') => allKeys(keys.of(kind)).map(({ publicKey }) => publicKey);
  return createApi({
    ...common,
    name: 'business',
    document: loadDocument('business'),
    sibling: { title: 'Platform API', url: config.platform.url },
    operations: businessOperations,
    deps: {
      store,
      gateway: {
        hostname: config.gateway.hostname,
        port: config.gateway.port,
        get hostKeys() {
          return lines('host');
        },
        get publicKeys() {
          return lines('client');
        },
        get fault() {
          return gateway.fault;
        },
        sessions: () => gateways.sessions(),
        close: (id, text) => gateway.close({ id }, closedByOperator, text) > 0,
      },
      offersKubernetesLogin: config.identity.kubernetes !== undefined,
      installation,
      audit,
      hashPassword: config.identity.issuer === undefined ? hashNewPassword : undefined,
      passwordLink: issuer.passwordLink,
      groups: config.identity.groups,
      checkCluster: (cluster) => checkCluster(cluster, { store, now }),
      surveyCluster: (cluster, names) => surveyCluster(cluster, names, parts),
      hostRules: {
        refusalOfFile: (path) => refusalOfFile(path, config.clusters.secrets),
        allowLocal: config.clusters.allowLocal,
        // Without root, `unsafeSimulatedLogins` decides for the host.
        allowSimulated: config.clusters.allowSimulated || process.getuid?.() !== 0,
      },
    },
    authenticate: (authorization) => authenticate(authorization, 'unauthorized'),
  });
}

function createPlatformApi(
  parts: ApiParts,
  common: CommonOptions,
  authenticate: Authenticate,
): RequestListener {
  const { config, store, issuer, keys, gateway, downloads } = parts;
  const { kubernetes, ca: issuerAuthority } = config.identity;
  return createApi({
    ...common,
    name: 'platform',
    document: loadDocument('platform'),
    sibling: { title: 'Business API', url: config.business.url },
    // People know the Platform API's address: they sign in with it.
    beside: { owns: downloads.owns, handle: downloads.at(config.platform.url) },
    consoleUrl: config.console?.url,
    operations: platformOperations,
    deps: {
      store,
      gateway: {
        hostname: config.gateway.hostname,
        port: config.gateway.port,
        hostKeys: () => allKeys(keys.of('host')),
        get fault() {
          return gateway.fault;
        },
      },
      signIn: {
        platformUrl: config.platform.url,
        businessUrl: config.business.url,
        issuer: issuer.url,
        audiences: config.identity.audiences,
        cliClientId: config.identity.cliClientId,
        scopes: issuer.scopes,
      },
      kubernetesLogin: kubernetes && { ...kubernetes, issuerAuthority, offersOffline: issuer.offersOffline },
    },
    authenticate: (authorization) => authenticate(authorization, 'forbidden'),
  });
}

type CommonOptions = ReturnType<typeof commonOptions>;

function commonOptions(parts: ApiParts) {
  const { store, proxies, gateway, acme, fronts, peers, log, now } = parts;
  const checkStore = createReadinessCheck(store);
  return {
    async checkReady() {
      if (fronts.isStopping) throw new DomainError('service_unavailable', 'This server is stopping.');
      const { fault } = gateway;
      if (fault !== undefined) {
        throw new DomainError('service_unavailable', `The SSH gateway does not serve: ${fault}.`);
      }
      const { clockFault } = peers;
      if (clockFault !== undefined) throw new DomainError('service_unavailable', clockFault);
      if (acme?.obstacle !== undefined) throw new DomainError('service_unavailable', acme.obstacle);
      await checkStore();
    },
    proxies,
    log,
    now,
  };
}

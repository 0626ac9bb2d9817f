/** The addresses that clients need: the issuer's, and a cluster's over SSH and of its Kubernetes API. */
import { stringify } from 'yaml';
import { decideAccess, isExplained } from '../../domain/access/decision.ts';
import { type Grant, longestLasting } from '../../domain/access/grant.ts';
import { type KubernetesReport, observationFreshnessMs } from '../../domain/access/manifest.ts';
import {
  effectivePermissions,
  heldUntil,
  hiddenFault,
  seesClusters,
} from '../../domain/access/permission.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { DomainError, forbidden, invalidState, notFound } from '../../domain/error.ts';
import { kubeconfig } from '../../domain/kubernetes/kubeconfig.ts';
import { present } from '../../domain/present.ts';
import { findPersonOnCluster } from '../../store/access/access-facts.ts';
import { requireClusterOf } from '../../store/clusters/clusters.ts';
import { findClusterReport } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { type Operation, type RequestContext, requireClusterId, requirePermission } from './access.ts';

/** The discovery document (contract, "Authentication"; RFC 9728); the one operation that needs no token. */
export const getProtectedResource: Operation<'getProtectedResource'> = async ({ signIn }) => ({
  resource: signIn.platformUrl,
  authorization_servers: [signIn.issuer],
  svc_audiences: [...signIn.audiences],
  svc_business_url: signIn.businessUrl,
  svc_cli_client_id: signIn.cliClientId,
  ...(signIn.scopes ? { svc_scopes: [...signIn.scopes] } : {}),
  bearer_methods_supported: ['header'],
});

/** Whether an SSH login works now (contract, "SSH access object"). Anyone with `clusters.ssh` gets a reply, ready or not. */
export const getSshAccess: Operation<'getSshAccess'> = async ({ store, gateway }, request) => {
  const { organizationId, keyFingerprint: fingerprint } = request.query;
  const clusterId = requireClusterId(request.path.clusterId);
  const person = await findPersonOnCluster(store, clusterId, request.caller.userId);
  if (person?.organizationId !== organizationId) {
    await requirePermission(store.read, request, organizationId, 'clusters.ssh');
    throw notFound('The organization has no such cluster.');
  }
  const { facts, generation, observed, loginMode, waiting } = person;
  const decision = decideAccess(facts, { fingerprint });
  const ready = decision.allowed && gateway.fault === undefined;
  const reason = ready ? 'ready' : decision.allowed ? 'gateway_unavailable' : decision.readiness;
  // A missing permission is the only obstacle without a reason code.
  if (reason === undefined) throw forbidden('This needs the permission clusters.ssh in the organization.');
  const isFresh = facts.observedMsAgo !== undefined && facts.observedMsAgo <= observationFreshnessMs;
  // A cluster without Slurm has nothing to reach through the gateway.
  const reachable = facts.takesAccessList;
  const [hostKey, otherHostKey] = gateway.hostKeys();
  const seesFaults = seesClusters(effectivePermissions(facts.role, facts.permissions));
  return {
    hostname: reachable ? gateway.hostname : '',
    port: gateway.port,
    username: facts.username ?? '',
    host_key: reachable ? hostKey.publicKey : '',
    host_key_fingerprint: reachable ? hostKey.fingerprint : '',
    ...present({ other_host_key: reachable ? otherHostKey?.publicKey : undefined }),
    login_mode: loginMode,
    ready,
    reason,
    ...(!decision.allowed && isExplained(decision.obstacle) && { lapsed: decision.message }),
    manifest_generation: generation,
    observed_manifest_generation: observed.manifestGeneration,
    ssh_key_set_generation: observed.keySetGeneration,
    key_fingerprints: observed.keyFingerprints.filter((key) => facts.activeKeys.includes(key)),
    shell: observed.shell,
    ...(waiting.length > 0 && {
      waiting_hosts: waiting.map(({ host, since = '', message }) => {
        return { host, since, message: seesFaults ? message : hiddenFault };
      }),
    }),
    ...present({ access_expires_at: facts.accessEndsAt, observed_at: observed.at }),
    observation_current: isFresh && observed.manifestGeneration >= generation,
  };
};

/** kubectl parses YAML 1.1, in which an unquoted namespace `no` or `0b1` would not be text. */
const forKubectl = { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 } as const;

export const getKubeconfig: Operation<'getKubeconfig'> = async (
  { store, signIn, kubernetesLogin },
  request,
) => {
  const clusterId = requireClusterId(request.path.clusterId);
  const { organizationId } = request.query;
  const admitted = await admission(store.read, request, organizationId, clusterId);
  const cluster = await requireClusterOf(store.read, organizationId, clusterId);
  if (!kubernetesLogin) {
    throw new DomainError(
      'customer_kubernetes_login_not_configured',
      'This installation does not offer sign-in to Kubernetes. Its operator has to configure identity.kubernetes.',
    );
  }
  const { server, certificateAuthority, tlsServerName } = await readyApi(store.read, cluster, request.now);
  const file = kubeconfig({
    clusterId,
    server,
    certificateAuthority,
    tlsServerName,
    namespace: admitted.scope ?? undefined,
    issuer: signIn.issuer,
    ...kubernetesLogin,
    staysSignedIn: await kubernetesLogin.offersOffline().catch(() => false),
  });
  return {
    kubeconfig: stringify(file, forKubectl),
    ...present({ accessExpiresAt: admitted.expiresAt }),
  };
};

/** The access that admits the caller, from the organization or a grant, with its end. Throws `forbidden` without one. */
async function admission(
  db: Reader,
  { caller: { userId }, now }: RequestContext,
  organizationId: string,
  clusterId: string,
): Promise<Pick<Grant, 'scope' | 'expiresAt'>> {
  const membership = await findMembership(db, organizationId, userId, now);
  if (membership?.permissions.has('clusters.kubernetes')) {
    return {
      scope: null,
      expiresAt: heldUntil(membership.role, membership.granted).endOf('clusters.kubernetes'),
    };
  }
  const grants = await listLiveGrants(db, userId, now);
  const grant = longestLasting(grants.filter((one) => one.clusterId === clusterId));
  if (grant) return grant;
  throw forbidden('This needs clusters.kubernetes in the organization, or a grant on the cluster.');
}

/** The Kubernetes API's address. Throws `invalid_state` unless the cluster is active and recently reported the API as ready. */
async function readyApi(db: Reader, cluster: Cluster, now: number): Promise<KubernetesReport> {
  if (cluster.state !== 'active') {
    throw invalidState(`The cluster is ${cluster.state}, not active.`);
  }
  const { kubernetes } = await findClusterReport(db, cluster, now);
  if (!kubernetes) {
    throw invalidState(
      'The cluster has not reported lately, so its Kubernetes API is not known to be ready.',
    );
  }
  if (!kubernetes.ready) {
    throw invalidState('The Kubernetes API of the cluster is not ready.');
  }
  return kubernetes;
}

/** How a person reaches a cluster's Kubernetes API. */
import { stringify } from 'yaml';
import { type Grant, longestLasting } from '../../domain/access/grant.ts';
import type { KubernetesReport } from '../../domain/access/manifest.ts';
import { heldUntil } from '../../domain/access/permission-end.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import { kubeconfig } from '../../domain/kubernetes/kubeconfig.ts';
import { findClusterReport } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { clusterOf, requireClusterId } from './access.ts';
import type { Operation } from './operation.ts';

/** kubectl reads YAML 1.1, where a namespace called `no` or `0b1` would be something else than text. */
const forKubectl = { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 } as const;

/** The file for whom the organization or a grant lets in, and how long that lasts. */
export const getKubeconfig: Operation<'getKubeconfig'> = async (
  { store, signIn, kubernetesLogin },
  { caller, path, query, now },
) => {
  const clusterId = requireClusterId(path.clusterId);
  const organizationId = query.organizationId;
  const admitted = await admission(store.read, { userId: caller.userId, organizationId, clusterId, now });
  const cluster = await clusterOf(store.read, organizationId, clusterId);
  if (!kubernetesLogin) {
    throw new DomainError(
      'customer_kubernetes_login_not_configured',
      'This installation does not offer sign-in to Kubernetes. Its operator has to configure identity.kubernetes.',
    );
  }
  const { server, certificateAuthority } = await readyApi(store.read, cluster, now);
  const file = kubeconfig({
    clusterId,
    server,
    certificateAuthority,
    namespace: admitted.scope ?? undefined,
    issuer: signIn.issuer,
    ...kubernetesLogin,
  });
  return {
    kubeconfig: stringify(file, forKubectl),
    ...(admitted.expiresAt === null ? {} : { accessExpiresAt: admitted.expiresAt }),
  };
};

/** What lets someone in, the organization or a grant, and for how long. Throws `forbidden` when nothing does. */
async function admission(
  db: Reader,
  {
    userId,
    organizationId,
    clusterId,
    now,
  }: { userId: string; organizationId: string; clusterId: string; now: number },
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
  throw new DomainError(
    'forbidden',
    'This needs clusters.kubernetes in the organization, or a grant on the cluster.',
  );
}

/** Where the Kubernetes API is. Throws `invalid_state` unless the cluster is active and lately said that it works. */
async function readyApi(db: Reader, cluster: Cluster, now: number): Promise<KubernetesReport> {
  if (cluster.state !== 'active') {
    throw new DomainError('invalid_state', `The cluster is ${cluster.state}, not active.`);
  }
  const { kubernetes } = await findClusterReport(db, cluster, now);
  if (!kubernetes) {
    throw new DomainError(
      'invalid_state',
      'The cluster has not reported lately, so its Kubernetes API is not known to be ready.',
    );
  }
  if (!kubernetes.ready) {
    throw new DomainError('invalid_state', 'The Kubernetes API of the cluster is not ready.');
  }
  return kubernetes;
}

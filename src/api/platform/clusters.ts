import { forbidden } from '../../domain/error.ts';
import { type ClusterOfPage, listClusterPage } from '../../store/clusters/clusters.ts';
import { cached } from '../../store/engine/cache.ts';
import type { Reader } from '../../store/engine/index.ts';
import { listGrantedClusters } from '../../store/organizations/grants.ts';
import {
  canReadClusters,
  type Operation,
  type PlatformReply,
  pageToken,
  readPageToken,
  visibleCluster,
} from './access.ts';

export const listClusters: Operation<'listClusters'> = async ({ store }, request) => {
  const { businessOrgId: organizationId, limit = 50, after: token } = request.query;
  const { userId } = request.caller;
  const list = `clusters/${organizationId}`;
  const after = token === undefined ? undefined : readPageToken(list, token);
  if (await canReadClusters(store.read, request, organizationId)) {
    const key = `clusters/${organizationId}/${limit}/${after ?? ''}`;
    return cached(store, key, () => clusterPage(store.read, { list, organizationId, limit, after }));
  }
  const among = await listGrantedClusters(store.read, { userId, organizationId }, request.now);
  if (among.length > 0) return clusterPage(store.read, { list, organizationId, limit, after, among });
  throw forbidden('This needs clusters.read in the organization, or a grant on a cluster.');
};

async function clusterPage(
  db: Reader,
  { list, limit, ...wanted }: Parameters<typeof listClusterPage>[1] & { list: string },
): Promise<PlatformReply<'listClusters'>> {
  const page = await listClusterPage(db, { ...wanted, limit: limit + 1 });
  const last = page.length > limit ? page[limit - 1] : undefined;
  return {
    items: page.slice(0, limit).map(clusterBody),
    ...(last ? { nextPageToken: pageToken(list, last.id) } : {}),
  };
}

export const getCluster: Operation<'getCluster'> = async ({ store }, request) =>
  clusterBody(await visibleCluster(store.read, request));

function clusterBody(cluster: ClusterOfPage): PlatformReply<'getCluster'> {
  return {
    id: cluster.id,
    metadata: { createdAt: cluster.createdAt, updatedAt: cluster.updatedAt },
    spec: {
      name: cluster.name,
      site: { id: cluster.siteId, name: cluster.siteName },
      businessOrganization: { id: cluster.organizationId },
      version: cluster.kubernetesVersion,
      versionGeneration: cluster.versionGeneration,
      desiredGeneration: cluster.desiredGeneration,
      schedulerGeneration: cluster.schedulerGeneration,
    },
    status: {
      lifecycleState: cluster.state,
      lifecycleVersion: cluster.lifecycleVersion,
      kubeletVersion: cluster.kubeletVersion,
    },
  };
}

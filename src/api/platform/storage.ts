/** The storage of an organization's clusters. */
import { storageInventory } from '../../domain/clusters/options.ts';
import { DomainError } from '../../domain/error.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { canReadClusters } from './access.ts';
import type { Operation } from './operation.ts';
import { optionFacts } from './options.ts';

/** An entry for every cluster that the organization owns, or owned. */
export const listStorage: Operation<'listStorage'> = async ({ store }, { caller, path, now }) => {
  const { orgId: organizationId } = path;
  if (!(await canReadClusters(store.read, { userId: caller.userId, organizationId, now }))) {
    throw new DomainError('forbidden', 'This needs the permission clusters.read in the organization.');
  }
  const clusters = await listOrganizationClusters(store.read, organizationId);
  const items = clusters.map(async (cluster) => ({
    clusterId: cluster.id,
    clusterName: cluster.name,
    lifecycleState: cluster.state,
    ...storageInventory(await optionFacts(store.read, cluster, now)),
  }));
  return { items: await Promise.all(items) };
};

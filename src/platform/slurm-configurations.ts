/** Slurm configurations: a cluster's own, and what an organization's new clusters start with. Replaced whole. */

import { isInService } from '../domain/cluster.ts';
import { DomainError } from '../domain/error.ts';
import { checkSlurmConfiguration, withoutEmptyFields } from '../domain/slurm-configuration.ts';
import { requireActiveOrganization } from '../store/organizations.ts';
import { runReplacement } from '../store/replacements.ts';
import {
  findDefaultSlurmConfiguration,
  findSlurmConfiguration,
  updateDefaultSlurmConfiguration,
  updateSlurmConfiguration,
} from '../store/slurm-configurations.ts';
import { clusterOf, requireClusterId, requirePermission } from './access.ts';
import type { PlatformDeps, PlatformReply, PlatformRequest } from './operation.ts';

const permission = 'clusters.configure';

/** A cluster's configuration; empty while it was never written. */
export async function getSchedulerConfiguration(
  { store }: PlatformDeps,
  { caller, path, query }: PlatformRequest<'getSchedulerConfiguration'>,
): Promise<PlatformReply<'getSchedulerConfiguration'>> {
  const clusterId = requireClusterId(path.clusterId);
  const organizationId = query.businessOrgId;
  await requirePermission(store.read, { userId: caller.userId, organizationId, permission });
  await clusterOf(store.read, organizationId, clusterId);
  return findSlurmConfiguration(store.read, clusterId);
}

/**
 * Replaces a cluster's configuration. Throws `invalid_scheduler_config`, naming the file, when it breaks a rule, and
 * `invalid_state` for a cluster that is out of service.
 */
export async function setSchedulerConfiguration(
  { store }: PlatformDeps,
  { caller, path, query, body, now }: PlatformRequest<'setSchedulerConfiguration'>,
): Promise<PlatformReply<'setSchedulerConfiguration'>> {
  const clusterId = requireClusterId(path.clusterId);
  const organizationId = query.businessOrgId;
  const { userId } = caller;
  const configuration = withoutEmptyFields(body);
  checkSlurmConfiguration(configuration);
  const about = { target: clusterId, organizationId, clusterId };
  return runReplacement(store, { operation: 'setSchedulerConfiguration', caller, about, now }, async (tx) => {
    await requirePermission(tx.db, { userId, organizationId, permission });
    const cluster = await clusterOf(tx.db, organizationId, clusterId);
    if (!isInService(cluster)) {
      throw new DomainError('invalid_state', `The cluster is ${cluster.state}, not provisioning or active.`);
    }
    const changed = await updateSlurmConfiguration(tx, { clusterId, configuration, userId });
    return { result: await findSlurmConfiguration(tx.db, clusterId), changed };
  });
}

/** What the organization's new clusters start with; empty when there is no default. */
export async function getDefaultSchedulerConfiguration(
  { store }: PlatformDeps,
  { caller, path }: PlatformRequest<'getDefaultSchedulerConfiguration'>,
): Promise<PlatformReply<'getDefaultSchedulerConfiguration'>> {
  await requirePermission(store.read, { userId: caller.userId, organizationId: path.orgId, permission });
  return findDefaultSlurmConfiguration(store.read, path.orgId);
}

/** Replaces what new clusters start with. Throws as above; `invalid_state` for an organization that is retired. */
export async function setDefaultSchedulerConfiguration(
  { store }: PlatformDeps,
  { caller, path, body, now }: PlatformRequest<'setDefaultSchedulerConfiguration'>,
): Promise<PlatformReply<'setDefaultSchedulerConfiguration'>> {
  const { orgId: organizationId } = path;
  const { userId } = caller;
  const configuration = withoutEmptyFields(body);
  checkSlurmConfiguration(configuration);
  const about = { target: organizationId, organizationId };
  return runReplacement(
    store,
    { operation: 'setDefaultSchedulerConfiguration', caller, about, now },
    async (tx) => {
      await requirePermission(tx.db, { userId, organizationId, permission });
      await requireActiveOrganization(tx.db, organizationId);
      const replacement = { organizationId, configuration, userId };
      const changed = await updateDefaultSlurmConfiguration(tx, replacement);
      return { result: await findDefaultSlurmConfiguration(tx.db, organizationId), changed };
    },
  );
}

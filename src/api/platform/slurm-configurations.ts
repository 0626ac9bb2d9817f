/** Slurm configurations: a cluster's own, and what an organization's new clusters start with. Replaced whole. */
import { DomainError } from '../../domain/error.ts';
import { checkSlurmConfiguration, withoutEmptyFields } from '../../domain/slurm/configuration.ts';
import { findLastSeq } from '../../store/audit/audit.ts';
import { runReplacement } from '../../store/audit/commands.ts';
import {
  findDefaultSlurmConfiguration,
  findSchedulerState,
  updateDefaultSlurmConfiguration,
  updateSlurmConfiguration,
} from '../../store/clusters/slurm-configurations.ts';
import { requireActiveOrganization } from '../../store/organizations/organizations.ts';
import { clusterOf, configurable, requireClusterId, requireInService, requirePermission } from './access.ts';
import type { Operation } from './operation.ts';

const permission = 'clusters.configure';

/** A cluster's configuration; empty while it was never written. */
export const getSchedulerConfiguration: Operation<'getSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  // The configuration and its number of the same moment.
  const { schedulerGeneration, slurmConfiguration } = await findSchedulerState(store.read, id);
  return { etag: tagOf(schedulerGeneration), body: slurmConfiguration };
};

function tagOf(generation: number): string {
  return `"${generation}"`;
}

/**
 * Replaces a cluster's configuration. Throws `invalid_scheduler_config`, naming the file, when it breaks a rule,
 * `invalid_state` for a cluster that is out of service, and `precondition_failed` where it would undo a change that the
 * caller has not seen.
 */
export const setSchedulerConfiguration: Operation<'setSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { caller, write, now } = request;
  const clusterId = requireClusterId(request.path.clusterId);
  const { businessOrgId: organizationId } = request.query;
  const configuration = withoutEmptyFields(request.body);
  checkSlurmConfiguration(configuration);
  const about = { target: clusterId, organizationId, clusterId };
  const operation = 'setSchedulerConfiguration';
  const meaning = [clusterId, organizationId, configuration];
  const generation = await runReplacement(
    store,
    { operation, caller, about, headers: write, meaning, now },
    {
      authorize: (tx) => requirePermission(tx.db, request, organizationId, permission),
      async apply(tx) {
        const cluster = await clusterOf(tx.db, organizationId, clusterId);
        requireInService(cluster);
        const auditSeq = (await findLastSeq(tx.db)) + 1;
        const wanted = { clusterId, configuration, userId: caller.userId, auditSeq };
        const changed = await updateSlurmConfiguration(tx, wanted);
        // A write that changes nothing cannot undo another person's.
        if (changed.length > 0) requireMatch(write.ifMatch, cluster.schedulerGeneration);
        return { result: cluster.schedulerGeneration + Math.min(changed.length, 1), changed };
      },
    },
  );
  return { etag: tagOf(generation), body: configuration };
};

/** Throws `precondition_failed` unless the configuration of this number is one that the caller has seen. */
function requireMatch(tags: readonly string[] | undefined, generation: number): void {
  if (!tags || tags.includes('*') || tags.includes(tagOf(generation))) return;
  throw new DomainError(
    'precondition_failed',
    `Somebody else changed the configuration: it is number ${generation} now. Look at it, and make your change again.`,
  );
}

/** What the organization's new clusters start with; empty when there is no default. */
export const getDefaultSchedulerConfiguration: Operation<'getDefaultSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { orgId: organizationId } = request.path;
  await requirePermission(store.read, request, organizationId, permission);
  return findDefaultSlurmConfiguration(store.read, organizationId);
};

/** Replaces what new clusters start with. Throws as above; `invalid_state` for an organization that is retired. */
export const setDefaultSchedulerConfiguration: Operation<'setDefaultSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { caller, now } = request;
  const { orgId: organizationId } = request.path;
  const configuration = withoutEmptyFields(request.body);
  checkSlurmConfiguration(configuration);
  const about = { target: organizationId, organizationId };
  return runReplacement(
    store,
    { operation: 'setDefaultSchedulerConfiguration', caller, about, now },
    {
      authorize: (tx) => requirePermission(tx.db, request, organizationId, permission),
      async apply(tx) {
        await requireActiveOrganization(tx.db, organizationId);
        const replacement = { organizationId, configuration, userId: caller.userId };
        const changed = await updateDefaultSlurmConfiguration(tx, replacement);
        return { result: await findDefaultSlurmConfiguration(tx.db, organizationId), changed };
      },
    },
  );
};

/** Slurm configurations: a cluster's own, and the default of an organization's new clusters. A write replaces the whole configuration. */
import { type AccessList, isRecent } from '../../domain/access/manifest.ts';
import { type Cluster, isInService, type Observation } from '../../domain/clusters/cluster.ts';
import { DomainError, notFound, TooManyRequests } from '../../domain/error.ts';
import { present } from '../../domain/present.ts';
import {
  checkSlurmConfiguration,
  configurationChanges,
  configurationFaults,
  partitionNames,
  rejectedReason,
  withoutEmptyFields,
} from '../../domain/slurm/configuration.ts';
import { restartPlan } from '../../domain/slurm/restart-plan.ts';
import { createRateLimiter } from '../../lib/limits.ts';
import { findAccessList } from '../../store/access/access-lists.ts';
import { findLastSeq } from '../../store/audit/audit.ts';
import { runReplacement } from '../../store/audit/commands.ts';
import { countOpenSessions } from '../../store/audit/open-sessions.ts';
import { findSideFailures } from '../../store/clusters/cluster-sides.ts';
import { requireClusterOf } from '../../store/clusters/clusters.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import {
  findDefaultSlurmConfiguration,
  findNewestSlurmVersion,
  findSchedulerState,
  findSlurmVersion,
  findSlurmVersionAt,
  listSlurmVersions,
  updateDefaultSlurmConfiguration,
  updateSlurmConfiguration,
} from '../../store/clusters/slurm-configurations.ts';
import { toTime } from '../../store/engine/time.ts';
import { requireActiveOrganization } from '../../store/organizations/organizations.ts';
import {
  configurable,
  type Operation,
  type PlatformReply,
  requireClusterId,
  requireInService,
  requirePermission,
} from './access.ts';

const permission = 'clusters.configure';

export const getSchedulerConfiguration: Operation<'getSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  // Both read at once, so that the configuration and its number belong together.
  const { schedulerGeneration, slurmConfiguration } = await findSchedulerState(store.read, id);
  return { etag: tagOf(schedulerGeneration), body: slurmConfiguration };
};

function tagOf(generation: number): string {
  return `"${generation}"`;
}

/**
 * Replaces a cluster's configuration. Throws `invalid_scheduler_config`, naming the file, for a broken rule,
 * `invalid_state` for a cluster out of service, and `precondition_failed` if it would undo a change that the caller
 * has not seen.
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
        const cluster = await requireClusterOf(tx.db, organizationId, clusterId);
        requireInService(cluster);
        const auditSeq = (await findLastSeq(tx.db)) + 1;
        const wanted = { clusterId, configuration, userId: caller.userId, auditSeq };
        const changed = await updateSlurmConfiguration(tx, wanted);
        // A write that changes nothing cannot undo another person's change.
        if (changed.length > 0) requireMatch(write.ifMatch, cluster.schedulerGeneration);
        return { result: cluster.schedulerGeneration + Math.min(changed.length, 1), changed };
      },
    },
  );
  return { etag: tagOf(generation), body: configuration };
};

/** Throws `precondition_failed` unless the caller's tags include the configuration of this number. */
function requireMatch(tags: readonly string[] | undefined, generation: number): void {
  if (!tags || tags.includes('*') || tags.includes(tagOf(generation))) return;
  throw new DomainError(
    'precondition_failed',
    `Somebody else changed the configuration: it is number ${generation} now. Look at it, and make your change again.`,
  );
}

export const getDefaultSchedulerConfiguration: Operation<'getDefaultSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const { orgId: organizationId } = request.path;
  await requirePermission(store.read, request, organizationId, permission);
  return findDefaultSlurmConfiguration(store.read, organizationId);
};

/** Replaces the default of new clusters. Throws as above; `invalid_state` for a retired organization. */
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

/** A check reads and compares up to 2 MiB; typing in the editor causes a few a minute. */
const checks = createRateLimiter({ burst: 20, everyMs: 500 });
const mostNames = 100;

/** Faults and effects of a configuration, before it is saved. Throws `invalid_state` for a cluster that takes none. */
export const checkSchedulerConfiguration: Operation<'checkSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  const waitMs = checks.take(request.caller.userId);
  if (waitMs > 0) throw new TooManyRequests('Too many checks at once. Try again in a second.', waitMs);
  const cluster = await configurable(store, request);
  requireInService(cluster);
  const after = withoutEmptyFields(request.body);
  const { schedulerGeneration, slurmConfiguration } = await findSchedulerState(store.read, cluster.id);
  const before = slurmConfiguration;
  const rollout = cluster.driver.slurm?.rollout ?? 'restart';
  const hasSlurm = cluster.scheduler === 'sunk';
  const restarts = hasSlurm ? restartPlan([], [], { before, after }).restarts : [];
  const ends = rollout === 'restart' ? restarts : [];
  const observation = await findObservation(store.read, cluster.id, 'slurm');
  const had = partitionNames(before.slurmPartitions);
  const left = partitionNames(after.slurmPartitions);
  const { changes, count: changeCount } = configurationChanges(before, after);
  return {
    generation: schedulerGeneration,
    faults: configurationFaults(after),
    changes,
    changeCount,
    // Without partitions of ours, those of the site's own file are in force again.
    removedPartitions: [...had].filter((name) => !left.has(name)).slice(0, mostNames),
    hasSlurm,
    restarts: [...ends],
    rollout,
    openSessions: ends.includes('login') ? await countOpenSessions(store.read, cluster.id) : 0,
    ...present({ endedJobs: ends.includes('compute') ? observation?.report.runningJobs?.length : 0 }),
  };
};

export const getSchedulerConfigurationStatus: Operation<'getSchedulerConfigurationStatus'> = async (
  { store },
  request,
) => {
  const cluster = await configurable(store, request);
  const [newest, observation, list, failures] = await Promise.all([
    findNewestSlurmVersion(store.read, cluster.id),
    findObservation(store.read, cluster.id, 'slurm'),
    findAccessList(store.read, cluster.id),
    findSideFailures(store.read, cluster.id, 'slurm'),
  ]);
  return {
    generation: cluster.schedulerGeneration,
    ...statusOf(cluster, { newest, observation, list, failures, now: request.now }),
    ...present({ savedAt: newest?.savedAt }),
    ...(observation && {
      inForceGeneration: await findSlurmVersionAt(store.read, cluster.id, observation.desiredGeneration),
      observedAt: toTime(observation.observedAt),
    }),
  };
};

function statusOf(
  cluster: Cluster,
  facts: {
    newest: { desiredGeneration: number } | undefined;
    observation: Observation<'slurm'> | undefined;
    list: AccessList | undefined;
    failures: { observe: string | undefined; apply: string | undefined };
    now: number;
  },
): Pick<PlatformReply<'getSchedulerConfigurationStatus'>, 'state' | 'message'> {
  const { newest, observation, list, failures } = facts;
  if (!isInService(cluster)) return { state: 'not_in_service' };
  if (!newest) return { state: 'never_written' };
  if (cluster.scheduler !== 'sunk') return { state: 'no_slurm' };
  if (failures.observe !== undefined) return { state: 'unknown', message: failures.observe };
  if (observation && !isRecent(observation.observedAt, facts.now)) return { state: 'unknown' };
  if (observation && observation.desiredGeneration >= newest.desiredGeneration) return { state: 'in_force' };
  const ready = observation?.report.scheduler?.ready;
  // A condition about an earlier configuration does not apply to this one.
  if (ready?.status === 'False' && (ready.observedGeneration ?? 0) >= newest.desiredGeneration) {
    const state = ready.reason === rejectedReason ? 'refused' : 'failed';
    return { state, ...present({ message: ready.message }) };
  }
  if (failures.apply !== undefined) return { state: 'failed', message: failures.apply };
  const isPassedOn = (list?.desiredGeneration ?? 0) >= cluster.desiredGeneration;
  return { state: isPassedOn ? 'applying' : 'saved' };
}

export const listSchedulerConfigurationVersions: Operation<'listSchedulerConfigurationVersions'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  const versions = await listSlurmVersions(store.read, id);
  return { items: versions.map(({ userId, email, ...rest }) => ({ ...rest, author: { userId, email } })) };
};

/** A stored version. Throws `not_found` for a version that is no longer stored. */
export const getSchedulerConfigurationVersion: Operation<'getSchedulerConfigurationVersion'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  const { generation } = request.path;
  const found = await findSlurmVersion(store.read, id, Number(generation));
  if (found) return found;
  throw notFound(`Configuration number ${generation} is not kept, or never was.`);
};

/** What a Slurm configuration would come to, how far one has come on its cluster, and those that the cluster was given. */
import { isInService } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import {
  configurationChanges,
  configurationFaults,
  partitionNames,
  withoutEmptyFields,
} from '../../domain/slurm/configuration.ts';
import { configurationStatus } from '../../domain/slurm/configuration-status.ts';
import { restartPlan } from '../../domain/slurm/restart-plan.ts';
import { createRateLimiter } from '../../lib/limits.ts';
import { findAccessList } from '../../store/access/access-lists.ts';
import { countOpenSessions } from '../../store/audit/open-sessions.ts';
import { findSideFailures } from '../../store/clusters/cluster-sides.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import {
  findNewestSlurmVersion,
  findSchedulerState,
  findSlurmVersion,
  findSlurmVersionAt,
  listSlurmVersions,
} from '../../store/clusters/slurm-configurations.ts';
import type { Store } from '../../store/engine/index.ts';
import { clusterOf, requireClusterId, requirePermission } from './access.ts';
import type { Operation } from './operation.ts';

const permission = 'clusters.configure';

/** A check reads up to 2 MiB and compares it. A person who types asks for a few a minute. */
const checks = createRateLimiter({ burst: 20, everyMs: 500 });
const mostNames = 100;

/** The cluster, for who may change its configuration. */
async function configurable(
  store: Store,
  request: {
    caller: { userId: string };
    path: { clusterId: string };
    query: { businessOrgId: string };
    now: number;
  },
) {
  const clusterId = requireClusterId(request.path.clusterId);
  const { userId } = request.caller;
  const organizationId = request.query.businessOrgId;
  await requirePermission(store.read, { userId, organizationId, permission, now: request.now });
  return clusterOf(store.read, organizationId, clusterId);
}

/** What a configuration would come to. Throws `invalid_state` for a cluster that takes none. */
export const checkSchedulerConfiguration: Operation<'checkSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  if (checks.take(request.caller.userId) > 0) {
    throw new DomainError('service_unavailable', 'Too many checks at once. Try again in a second.');
  }
  const cluster = await configurable(store, request);
  if (!isInService(cluster)) {
    throw new DomainError('invalid_state', `The cluster is ${cluster.state}, not provisioning or active.`);
  }
  const after = withoutEmptyFields(request.body);
  const { schedulerGeneration, slurmConfiguration: before } = await findSchedulerState(
    store.read,
    cluster.id,
  );
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
    // Without any of ours, those of the site's own file are in force again.
    removedPartitions: [...had].filter((name) => !left.has(name)).slice(0, mostNames),
    hasSlurm,
    restarts: [...ends],
    rollout,
    openSessions: ends.includes('login') ? await countOpenSessions(store.read, cluster.id) : 0,
    endedJobs: ends.includes('compute') ? (observation?.report.runningJobs.length ?? 0) : 0,
  };
};

/** How far the newest configuration has come. */
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
  const isPassedOn = list !== undefined && list.acceptedGeneration === list.generation;
  const status = configurationStatus({
    clusterState: cluster.state,
    hasSlurm: cluster.scheduler === 'sunk',
    desiredGeneration: cluster.desiredGeneration,
    passedOnGeneration: isPassedOn ? list.desiredGeneration : 0,
    newest,
    observation: observation && { ...observation, ready: observation.report.scheduler?.ready },
    observeFailure: failures.observe,
    applyFailure: failures.apply,
    now: request.now,
  });
  return {
    generation: cluster.schedulerGeneration,
    ...status,
    ...(newest && { savedAt: newest.savedAt }),
    ...(observation && {
      inForceGeneration: await findSlurmVersionAt(store.read, cluster.id, observation.desiredGeneration),
      observedAt: new Date(observation.observedAt).toISOString(),
    }),
  };
};

/** The configurations that the cluster was given, newest first. */
export const listSchedulerConfigurationVersions: Operation<'listSchedulerConfigurationVersions'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  const versions = await listSlurmVersions(store.read, id);
  return { items: versions.map(({ userId, email, ...rest }) => ({ ...rest, author: { userId, email } })) };
};

/** One of them. Throws `not_found` for what is not kept any more. */
export const getSchedulerConfigurationVersion: Operation<'getSchedulerConfigurationVersion'> = async (
  { store },
  request,
) => {
  const { id } = await configurable(store, request);
  const { generation } = request.path;
  const found = await findSlurmVersion(store.read, id, Number(generation));
  if (found) return found;
  throw new DomainError('not_found', `Configuration number ${generation} is not kept, or never was.`);
};

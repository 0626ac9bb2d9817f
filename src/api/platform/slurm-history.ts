/** What a Slurm configuration would come to, how far one has come on its cluster, and those that the cluster was given. */
import { type AccessList, isRecent } from '../../domain/access/list.ts';
import { type Cluster, isInService } from '../../domain/clusters/cluster.ts';
import type { Observation } from '../../domain/clusters/observation.ts';
import { DomainError, notFound } from '../../domain/error.ts';
import { present } from '../../domain/present.ts';
import {
  configurationChanges,
  configurationFaults,
  partitionNames,
  rejectedReason,
  withoutEmptyFields,
} from '../../domain/slurm/configuration.ts';
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
import { toTime } from '../../store/engine/time.ts';
import { configurable, requireInService } from './access.ts';
import type { Operation, PlatformReply } from './operation.ts';

/** A check reads up to 2 MiB and compares it. A person who types asks for a few a minute. */
const checks = createRateLimiter({ burst: 20, everyMs: 500 });
const mostNames = 100;

/** What a configuration would come to. Throws `invalid_state` for a cluster that takes none. */
export const checkSchedulerConfiguration: Operation<'checkSchedulerConfiguration'> = async (
  { store },
  request,
) => {
  if (checks.take(request.caller.userId) > 0) {
    throw new DomainError('service_unavailable', 'Too many checks at once. Try again in a second.');
  }
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

/** How far the newest configuration of a cluster has come, from what the cluster reported last. */
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
  // What was said of an earlier configuration is not said of this one.
  if (ready?.status === 'False' && (ready.observedGeneration ?? 0) >= newest.desiredGeneration) {
    const state = ready.reason === rejectedReason ? 'refused' : 'failed';
    return { state, ...present({ message: ready.message }) };
  }
  if (failures.apply !== undefined) return { state: 'failed', message: failures.apply };
  const isPassedOn =
    list?.acceptedGeneration === list?.generation &&
    (list?.desiredGeneration ?? 0) >= cluster.desiredGeneration;
  return { state: isPassedOn ? 'applying' : 'saved' };
}

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
  throw notFound(`Configuration number ${generation} is not kept, or never was.`);
};

/** Problems for operators, and the state of the service's keys, backups and servers. */
import { isRecent } from '../../../domain/access/manifest.ts';
import {
  type Cluster,
  type Observation,
  type SideState,
  schedulerTrouble,
  sideTrouble,
  waitingText,
} from '../../../domain/clusters/cluster.ts';
import { inOrderOfUrgency, type Problem, type SidePasses } from '../../../domain/installation-state.ts';
import { problemsOfGroups } from '../../../domain/organizations/group-rules.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import { problemsOfServers } from '../../../domain/server.ts';
import { listAllClusters } from '../../../store/clusters/clusters.ts';
import { findObservation, listSideStates } from '../../../store/clusters/observations.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { toTime } from '../../../store/engine/time.ts';
import { listKeptOwners } from '../../../store/organizations/holdings.ts';
import { findGroupFaults, isGroupClaimUnseen } from '../../../store/people/groups.ts';
import { listServers } from '../../../store/servers/servers.ts';
import type { InstallationView } from '../operation.ts';
import { staffReads } from './about.ts';

export const operatorListProblems = staffReads<'operatorListProblems'>(
  async ({ store, installation, groups }, { now }) => {
    const clusters = (await listAllClusters(store.read)).filter(({ state }) => state !== 'released');
    const found = await Promise.all(
      clusters.map((cluster) => problemsOf(store.read, cluster, now, installation)),
    );
    const ofServers = problemsOfServers(await listServers(store));
    const faults = groups && (await findGroupFaults(store.read, groups.source));
    const isUnseen = groups && (await isGroupClaimUnseen(store.read, groups.source));
    const unseen = isUnseen ? groups.source.claim : undefined;
    const ofGroups = problemsOfGroups(faults, await listKeptOwners(store.read), unseen);
    const problems = inOrderOfUrgency([
      ...installation.problems(),
      ...ofServers,
      ...ofGroups,
      ...found.flat(),
    ]);
    return { problems: problems.map(problemBody) };
  },
);

export const operatorGetInstallation = staffReads<'operatorGetInstallation'>(async ({ installation }) => {
  const { schedule, last, kept, failure, drill } = installation.backup();
  return {
    keys: installation.keys().map(({ kind, held: { used, next, former, from, until } }) => ({
      kind,
      current: { ...used, ...(next && present({ until })) },
      ...(next && { next: { ...next, ...present({ from }) } }),
      ...(former && { former: { ...former, ...present({ until }) } }),
    })),
    backup: {
      ...(schedule && {
        schedule: {
          to: schedule.to,
          every_seconds: Math.round(schedule.everyMs / 1000),
          due_at: schedule.dueAt,
        },
      }),
      ...(last && { last: { at: last.at, file: last.file, bytes: last.bytes } }),
      ...(kept && { kept: { at: kept.at, file: kept.file, bytes: kept.bytes } }),
      ...(failure && { failure: { at: failure.at, failures: failure.failures, message: failure.message } }),
      ...(drill && { drill: { at: drill.at, file: drill.file, good: drill.isGood } }),
    },
  };
});

/** The servers of the database in the order of their start, including recently dead ones. */
export const operatorListServers = staffReads<'operatorListServers'>(async ({ store }) => {
  const servers = await listServers(store);
  return {
    servers: servers.map((server) => ({
      ...snakeCased(server, ['id', 'name', 'version', 'startedAt', 'seenAt', 'leads']),
      state: server.isLive ? ('live' as const) : ('gone' as const),
      answers: server.id === store.server.id,
    })),
  };
});

/** Since when a side has failed: the recorded time, else when this process first saw the failure. RFC 3339. */
export function failingSince(state: SideState, passes: SidePasses | undefined): string | null {
  if (sideTrouble(state) === null) return null;
  const { lastTransitionTime } = schedulerTrouble(state) ?? {};
  if (lastTransitionTime !== undefined) return lastTransitionTime;
  const since = state.observeFailure?.since ?? passes?.failingSince;
  return since === undefined ? null : toTime(since);
}

async function problemsOf(
  db: Reader,
  cluster: Cluster,
  now: number,
  { passesOf }: InstallationView,
): Promise<Problem[]> {
  const [sides, observation] = await Promise.all([
    listSideStates(db, cluster),
    findObservation(db, cluster.id, 'slurm'),
  ]);
  const at = { area: 'cluster' as const, about: cluster.name, clusterId: cluster.id };
  return [
    ...sides.flatMap((state) => {
      const passes = passesOf(cluster.id, state.side);
      const nextTryAt = passes?.nextAt === undefined ? undefined : toTime(passes.nextAt);
      const known = problemOf(cluster, state, passes, now);
      return known ? [{ ...at, side: state.side, nextTryAt, ...known }] : [];
    }),
    ...[...problemOfHosts(observation, now), ...problemOfJobLogins(observation)].map((known) => ({
      ...at,
      side: 'slurm' as const,
      ...known,
    })),
  ];
}

/** A problem without its location. */
type UnlocatedProblem = Pick<Problem, 'urgency' | 'since' | 'message' | 'action'>;

/** The usual time for a list to reach a host. */
const usualWaitMs = 60_000;

/** Hosts with an older list: people removed since may still have accounts and processes there. */
function problemOfHosts(observation: Observation<'slurm'> | undefined, now: number): UnlocatedProblem[] {
  const late = (observation?.waiting ?? []).filter(
    ({ since = '' }) => Date.parse(since) <= now - usualWaitMs,
  );
  const message = waitingText(late);
  if (message === undefined) return [];
  return [
    {
      urgency: 'now',
      since: late.map(({ since = '' }) => since).sort()[0],
      message: `The access list is not everywhere, and people who were taken off it may still be on what lacks it. ${message}`,
      action:
        'Bring the hosts back: they get it first of all when they answer. Those that never will, take out of slurm.conf, or name in `retired` of the lab file.',
    },
  ];
}

/** Faults because of which people cannot log in to their jobs, or are not confined to them. */
function problemOfJobLogins(observation: Observation<'slurm'> | undefined): UnlocatedProblem[] {
  const lacks = observation?.report.jobLogins ?? [];
  if (lacks.length === 0) return [];
  return [
    {
      urgency: 'soon',
      message: `For logins into jobs something is missing. ${lacks.join('; ')}.`,
      action: 'Install or configure it there (docs/jobs.md).',
    },
  ];
}

function problemOf(
  { name, state: lifecycle, cleanupState, createdAt }: Cluster,
  state: SideState,
  passes: SidePasses | undefined,
  now: number,
): UnlocatedProblem | undefined {
  const { observation, observeFailure } = state;
  const failure = sideTrouble(state);
  if (failure !== null) {
    const since = failingSince(state, passes) ?? undefined;
    return { urgency: 'now', since, message: failure, action: actionFor(name, state) };
  }
  if (lifecycle === 'releasing' && cleanupState !== 'pending' && cleanupState !== 'done' && cleanupState)
    return {
      urgency: 'now',
      message: `It cannot be released: ${cleanupState}`,
      action: `Mend what it says; or give it up with \`andromeda admin cluster release ${name} --abandon\`.`,
    };
  const silentSince = observation?.observedAt ?? Date.parse(createdAt);
  if (observeFailure || isRecent(silentSince, now)) return undefined;
  return {
    urgency: 'soon',
    since: toTime(silentSince),
    message: `It has not reported ${observation ? 'lately' : 'yet'}: what it has now is not known.`,
    action: 'Wait for the next try. If it stays silent, read the log for `sync.failed`.',
  };
}

function actionFor(name: string, state: SideState): string {
  const { side, observeFailure, observation } = state;
  if (side === 'kubernetes' && /\bright\b|credentials/.test(observation?.report.failure ?? ''))
    return `Ask the cluster with \`andromeda admin cluster check ${name}\`, and add the rule that is missing.`;
  const trouble = schedulerTrouble(state);
  if (trouble && /Down$/.test(trouble.reason ?? ''))
    return 'Start the daemon that it names on its host; what waits for it is then done by itself.';
  if (observeFailure || trouble)
    return side === 'slurm'
      ? 'See that its controller is up, and that this host reaches it over SSH.'
      : 'See that its API server is up, and that this host reaches it.';
  return 'Mend on the cluster what it says; it is applied again by itself.';
}

function problemBody({ clusterId, nextTryAt, side, since, ...problem }: Problem) {
  return { ...problem, ...present({ cluster_id: clusterId, side, since, next_try_at: nextTryAt }) };
}

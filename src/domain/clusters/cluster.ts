/** Clusters: one record for both APIs, and the values derived from it alone. */
import {
  type BlockedPerson,
  type ConditionReport,
  isRecent,
  type MachineReport,
  type SideReport,
  type SlurmReport,
  type StorageReport,
  type WaitingHost,
} from '../access/manifest.ts';
import { present } from '../present.ts';
import type { ClusterLink, LabCluster } from './lab.ts';

export type ClusterState = 'provisioning' | 'active' | 'releasing' | 'released';

export type DriverSettings = Pick<LabCluster, 'simulated' | 'slurm' | 'kubernetes'>;

export interface Cluster {
  id: string;
  organizationId: string;
  name: string;
  siteId: string;
  siteName: string;
  scheduler: 'sunk' | 'kubernetes' | null;
  driver: DriverSettings;
  links: readonly ClusterLink[];
  state: ClusterState;
  reasonCode: string | null;
  expectedNodeCount: number | null;
  assignedNodeCount: number;
  /** Set while nodes are reserved for the cluster; the reserved number is its expected number of nodes. */
  reservationId: string | null;
  infrastructureReadyAt: string | null;
  teardownCompletedAt: string | null;
  cleanupState: string | null;
  endCommandId: string | null;
  version: number;
  kubernetesVersion: string;
  versionGeneration: number;
  desiredGeneration: number;
  schedulerGeneration: number;
  lifecycleVersion: number;
  kubeletVersion: string;
  createdAt: string;
  updatedAt: string;
}

/** True while the service still applies changes to the cluster. */
export function isInService({ state }: { state: ClusterState }): boolean {
  return state === 'provisioning' || state === 'active';
}

export type Side = 'slurm' | 'kubernetes';

export const allSides = ['slurm', 'kubernetes'] as const satisfies readonly Side[];

/** The sides of a cluster. A simulated cluster has the side of its scheduler. */
export function sidesOf({ scheduler, driver }: Pick<Cluster, 'scheduler' | 'driver'>): Side[] {
  const real = allSides.filter((side) => driver[side] !== undefined);
  if (real.length > 0) return real;
  return [scheduler === 'sunk' ? 'slurm' : 'kubernetes'];
}

/** True if a side of the cluster is only simulated by this service. */
export function isSimulated(cluster: Pick<Cluster, 'scheduler' | 'driver'>): boolean {
  return sidesOf(cluster).some((side) => cluster.driver[side] === undefined);
}

const mostNames = 20;

/**
 * A text that names the objects left on a side of a cluster that was given up before its cleanup. An operator may
 * have to remove them by hand. `usernames`: the login names that were made on Slurm clusters of the organization.
 */
export function leftBehind(
  cluster: Pick<Cluster, 'id' | 'driver'>,
  side: Side,
  usernames: readonly string[],
): string {
  const { slurm, kubernetes } = cluster.driver;
  if (side === 'kubernetes') {
    const where = kubernetes?.server ?? kubernetes?.kubeconfig;
    return `ClusterRoleBindings and RoleBindings with the label andromeda/cluster=${cluster.id}${where === undefined ? '' : ` (${where})`}`;
  }
  const hosts = [slurm?.controller, slurm?.accounting, slurm?.homes, ...(slurm?.login ?? [])].flatMap(
    (one) => one?.host ?? [],
  );
  const names = usernames.slice(0, mostNames).join(', ');
  const more = usernames.length > mostNames ? ` and ${usernames.length - mostNames} more` : '';
  const where = hosts.length === 0 ? '' : ` on ${[...new Set(hosts)].join(', ')} and the compute nodes`;
  return `the accounts ${names || 'of nobody'}${more}, their Slurm associations and our part of the Slurm configuration${where}`;
}

/** A machine in its cluster's reports. Times in RFC 3339. */
export interface Machine {
  id: string;
  clusterId: string;
  name: string;
  lifecycleState: 'registered' | 'admitted' | 'quarantined';
  report: MachineReport | undefined;
  reportGeneration: number;
  observedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

type Freshness = 'fresh' | 'stale' | 'unknown';

/**
 * A machine's heartbeat is its cluster's report of it: `stale` when a due report is missing, `unknown` when no report
 * is due any more. Times in ms since 1970.
 */
export function freshness(facts: { observedAt: number; isHeartbeatDue: boolean; now: number }): Freshness {
  if (isRecent(facts.observedAt, facts.now)) return 'fresh';
  return facts.isHeartbeatDue ? 'stale' : 'unknown';
}

export interface SideState {
  side: Side;
  /** The last successful observation; undefined before the first. */
  observation: { observedAt: number; report: SideReport } | undefined;
  /** The message of the last observation if it failed, and the start of the failures; undefined after a success. */
  observeFailure: { since: number; message: string } | undefined;
  /** The fault that keeps the side from its desired state; undefined without one. */
  applyFailure: string | undefined;
}

export interface ClusterReport extends Pick<SideReport, 'scheduler' | 'storage' | 'kubernetes'> {
  /** The last observation of any side, in ms since 1970; undefined before the first. */
  observedAt: number | undefined;
  /** All faults that a person must mend; null without any. */
  failure: string | null;
}

/** Merges the sides' reports. Old reports are ignored, and a Kubernetes side that cannot be reached counts as not ready. */
export function mergeSides(states: readonly SideState[], now: number): ClusterReport {
  const recent = new Map(states.flatMap((state) => recentReport(state, now)));
  const [slurm, kubernetes] = [recent.get('slurm'), recent.get('kubernetes')];
  const hasSlurm = states.some(({ side }) => side === 'slurm');
  const scheduler = (hasSlurm ? slurm : kubernetes)?.scheduler;
  const storage = mergeStorage(slurm?.storage, kubernetes?.storage);
  const observed = states.flatMap(({ observation }) => observation?.observedAt ?? []);
  return {
    observedAt: observed.length === 0 ? undefined : Math.max(...observed),
    failure: [...new Set(states.flatMap((state) => troublesOf(state)))].join(' ') || null,
    ...present({ scheduler, storage, kubernetes: kubernetes?.kubernetes ?? slurm?.kubernetes }),
  };
}

function recentReport(state: SideState, now: number): [Side, SideReport][] {
  const { side, observation, observeFailure, applyFailure } = state;
  if (!observation || !isRecent(observation.observedAt, now)) return [];
  const report = withGenerations(observation.report);
  // Slurm's reports say themselves which hosts do not answer; an API server is a single host.
  if (side === 'kubernetes' && observeFailure) return [[side, unreachable(report, observeFailure)]];
  return [[side, applyFailure === undefined ? report : withMessage(report, applyFailure)]];
}

/** A condition applies to the configuration in force on its side, unless it names another. */
function withGenerations(report: SideReport): SideReport {
  const { desiredGeneration: observedGeneration } = report;
  return withConditions(report, (condition) => ({ observedGeneration, ...condition }));
}

function unreachable(
  report: SideReport,
  { since, message }: NonNullable<SideState['observeFailure']>,
): SideReport {
  const { kubernetes } = report;
  const unknown = withConditions(report, ({ observedGeneration = 0 }) => ({
    status: 'Unknown',
    observedGeneration,
    reason: 'ApiUnreachable',
    message,
    lastTransitionTime: new Date(since).toISOString(),
  }));
  return { ...unknown, ...(kubernetes ? { kubernetes: { ...kubernetes, ready: false } } : {}) };
}

/** Adds an apply failure to a ready scheduler's message: the scheduler works, the failure may affect only some people. */
function withMessage(report: SideReport, added: string): SideReport {
  const { scheduler } = report;
  if (scheduler?.ready?.status !== 'True') return report;
  const message = [...new Set([scheduler.ready.message ?? added, added])].join(' ');
  return { ...report, scheduler: { ...scheduler, ready: { ...scheduler.ready, message } } };
}

function withConditions(
  report: SideReport,
  change: (condition: ConditionReport) => ConditionReport,
): SideReport {
  const { scheduler, storage } = report;
  return {
    ...report,
    ...(scheduler?.ready ? { scheduler: { ...scheduler, ready: change(scheduler.ready) } } : {}),
    ...(storage?.ready ? { storage: { ...storage, ready: change(storage.ready) } } : {}),
  };
}

/** The faults that keep changes from being applied on a side; null without any. */
export function sideFailure(state: SideState): string | null {
  return [...new Set(faultsOf(state))].join(' ') || null;
}

/** The faults of a side that a person must mend, even if changes are applied; null without any. */
export function sideTrouble(state: SideState): string | null {
  return [...new Set(troublesOf(state))].join(' ') || null;
}

/** The condition of a scheduler that is down (a daemon or its host) though nothing else is wrong. */
export function schedulerTrouble(state: SideState): ConditionReport | undefined {
  const ready = state.observation?.report.scheduler?.ready;
  const isTrouble = ready !== undefined && ready.status !== 'True' && ready.reason !== beginning;
  return isTrouble && faultsOf(state).length === 0 ? ready : undefined;
}

/** The reason code of a scheduler that was never ready yet. */
const beginning = 'Provisioning';

function troublesOf(state: SideState): string[] {
  const trouble = schedulerTrouble(state);
  return trouble
    ? [trouble.message ?? `It is not ready: ${trouble.reason ?? 'it does not say why'}.`]
    : faultsOf(state);
}

function faultsOf({ observation, observeFailure, applyFailure }: SideState): string[] {
  return sentencesOf([observeFailure?.message ?? observation?.report.failure, applyFailure]);
}

/** The distinct sentences of several texts. */
export function sentencesOf(texts: readonly (string | null | undefined)[]): string[] {
  return [...new Set(texts.flatMap((text) => text?.split(/(?<=\.) (?=\p{Lu})/u) ?? []))];
}

/**
 * Merges machines of the same name: Slurm's facts win, Kubernetes adds the others. GPU use comes from Slurm alone,
 * since Slurm's own pod holds all GPUs in Kubernetes.
 */
export function mergeMachines(
  slurm: readonly MachineReport[],
  kubernetes: readonly MachineReport[],
): MachineReport[] {
  const merged = new Map<string, MachineReport>();
  for (const machine of slurm) merged.set(machine.name, machine);
  for (const machine of kubernetes) {
    const known = merged.get(machine.name);
    const { gpusInUse: _pods, reason: _node, ...hardware } = machine;
    merged.set(machine.name, known ? { ...hardware, ...known } : machine);
  }
  return [...merged.values()];
}

/** The cluster has a storage type that either side has; the type is unknown if neither has it and one could not be read. */
function mergeStorage(
  slurm: StorageReport | undefined,
  kubernetes: StorageReport | undefined,
): StorageReport | undefined {
  if (!slurm || !kubernetes) return slurm ?? kubernetes;
  const has = (type: 'ceph' | 'weka' | 'nfs') => {
    if (slurm[type] || kubernetes[type]) return true;
    return slurm[type] === undefined || kubernetes[type] === undefined ? undefined : false;
  };
  const [ceph, weka, nfs] = [has('ceph'), has('weka'), has('nfs')];
  return { ...slurm, ...kubernetes, ...present({ ceph, weka, nfs: nfs && !ceph && !weka }) };
}

/** The part of a Slurm report that is stored as one JSON text; accounts and GPU time have rows of their own. */
export type KeptSlurmReport = Omit<SlurmReport, 'accounts' | 'gpuDays' | 'numbers'> & {
  /** RFC 3339: when a controller that did not answer for this report last answered. */
  controllerHeardAt?: string;
};

/** Hosts that did not answer, and since when. Only Slurm's reports have it. */
export type Silence = Pick<KeptSlurmReport, 'silent' | 'waiting' | 'blocked' | 'controllerHeardAt'>;

/** Completes a report from the previous one: since when hosts wait and people are blocked, and when a silent controller last answered. */
export function withSilence<R extends Silence>(
  report: R,
  before: { report: Silence; at: string } | undefined,
  at: string,
): R {
  const { waiting, blocked, silent } = report;
  const earlier = new Map(before?.report.waiting?.map((one) => [one.host, one.since]));
  const keyOf = ({ host, userId }: BlockedPerson) => `${host} ${userId}`;
  const wereBlocked = new Map(before?.report.blocked?.map((one) => [keyOf(one), one.since]));
  return {
    ...report,
    ...(waiting && { waiting: waiting.map((one) => ({ since: earlier.get(one.host) ?? at, ...one })) }),
    ...(blocked && { blocked: blocked.map((one) => ({ since: wereBlocked.get(keyOf(one)) ?? at, ...one })) }),
    ...(silent && { controllerHeardAt: before?.report.controllerHeardAt ?? before?.at ?? at }),
  };
}

/** Fills in each condition's transition time: the driver's, else the earlier report's if the status is the same, else `at`. */
export function withTransitionTimes<R extends Pick<SideReport, 'scheduler' | 'storage'>>(
  report: R,
  earlier: Pick<SideReport, 'scheduler' | 'storage'> | undefined,
  at: string,
): R {
  const settled = { ...report };
  const { scheduler, storage } = report;
  if (scheduler?.ready) {
    const before = earlier?.scheduler;
    const same = before?.configured === scheduler.configured ? before.ready : undefined;
    settled.scheduler = { ...scheduler, ready: since(scheduler.ready, same, at) };
  }
  if (storage?.ready) {
    settled.storage = { ...storage, ready: since(storage.ready, earlier?.storage?.ready, at) };
  }
  return settled;
}

function since(
  condition: ConditionReport,
  earlier: ConditionReport | undefined,
  at: string,
): ConditionReport {
  const unchanged = earlier?.status === condition.status ? earlier.lastTransitionTime : undefined;
  return { ...condition, lastTransitionTime: condition.lastTransitionTime ?? unchanged ?? at };
}

export interface Observation<S extends Side = Side> {
  /** In ms since 1970: the last answer of the cluster's controller or API server. */
  observedAt: number;
  /** The accepted list in force there; 0 before the first, and on a cluster without a list. */
  manifestGeneration: number;
  desiredGeneration: number;
  /** The version of the organization's list that its accounts are from; 0: no list. */
  listVersion: number;
  /** A sentence that says what a person must mend there; null for no fault. */
  failure: string | null;
  /** Hosts that have not confirmed the newest list, the furthest behind first. */
  waiting: readonly WaitingHost[];
  report: S extends 'slurm' ? KeptSlurmReport : SideReport;
}

/** The waiting hosts that have not confirmed this version of the organization's list. */
export function waitingFor(
  version: number,
  { waiting = [] }: Pick<Silence, 'waiting'>,
): readonly WaitingHost[] {
  return waiting.filter(({ listVersion = 0 }) => listVersion < version);
}

const mostNamed = 5;

/** A sentence that names the waiting hosts, those with the same reason together, and since when they wait; undefined without any. */
export function waitingText(waiting: readonly WaitingHost[]): string | undefined {
  if (waiting.length === 0) return undefined;
  const groups = [...Map.groupBy(waiting, ({ since, message }) => `${since} ${message}`).values()];
  const named = groups.slice(0, mostNamed).flatMap(([first, ...others]) => {
    if (!first) return [];
    const { host, since, message } = first;
    const together = others.length > 0 ? ` and ${others.length} more` : '';
    return `${host}${together}${since === undefined ? '' : ` since ${since}`} (${message})`;
  });
  const rest = groups.slice(mostNamed).flat().length;
  const more = rest > 0 ? `, and ${rest} more` : '';
  return `Hosts that have not confirmed it: ${named.join(', ')}${more}.`;
}

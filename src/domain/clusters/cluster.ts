/** Clusters: one record for both APIs, and what follows from it alone. */
import {
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
  /** Set while nodes of it are reserved, which are its expected ones. */
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

/** Whether a cluster is asked for anything, and can be given anything. */
export function isInService({ state }: { state: ClusterState }): boolean {
  return state === 'provisioning' || state === 'active';
}

export type Side = 'slurm' | 'kubernetes';

export const allSides = ['slurm', 'kubernetes'] as const satisfies readonly Side[];

/** The sides of a cluster. A simulated one has the side of its scheduler. */
export function sidesOf({ scheduler, driver }: Pick<Cluster, 'scheduler' | 'driver'>): Side[] {
  const real = allSides.filter((side) => driver[side] !== undefined);
  if (real.length > 0) return real;
  return [scheduler === 'sunk' ? 'slurm' : 'kubernetes'];
}

/** Whether a side of it exists in this service only. */
export function isSimulated(cluster: Pick<Cluster, 'scheduler' | 'driver'>): boolean {
  return sidesOf(cluster).some((side) => cluster.driver[side] === undefined);
}

const mostNames = 20;

/**
 * Text: what stays on a side of a cluster that is given up before it could be cleaned. An operator may have to remove it by hand.
 * `usernames`: the login names that were made on Slurm clusters of the organization.
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
  const hosts = [slurm?.controller, slurm?.accounting, ...(slurm?.login ?? [])].flatMap(
    (one) => one?.host ?? [],
  );
  const names = usernames.slice(0, mostNames).join(', ');
  const more = usernames.length > mostNames ? ` and ${usernames.length - mostNames} more` : '';
  const where = hosts.length === 0 ? '' : ` on ${[...new Set(hosts)].join(', ')} and the compute nodes`;
  return `the accounts ${names || 'of nobody'}${more}, their Slurm associations and our part of the Slurm configuration${where}`;
}

/** A machine that its cluster reported. Times in RFC 3339. */
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
 * A machine's heartbeat is its cluster's report of it: `stale` when one was due and did not come, `unknown` when none
 * is due any more. Times in ms since 1970.
 */
export function freshness(facts: { observedAt: number; isHeartbeatDue: boolean; now: number }): Freshness {
  if (isRecent(facts.observedAt, facts.now)) return 'fresh';
  return facts.isHeartbeatDue ? 'stale' : 'unknown';
}

export interface SideState {
  side: Side;
  /** The last observation that succeeded; undefined before the first. */
  observation: { observedAt: number; report: SideReport } | undefined;
  /** Why the last attempt to observe it failed, and since when they fail; undefined when it did not. */
  observeFailure: { since: number; message: string } | undefined;
  /** Why it is not as it should be; undefined when nothing stands in the way. */
  applyFailure: string | undefined;
}

export interface ClusterReport extends Pick<SideReport, 'scheduler' | 'storage' | 'kubernetes'> {
  /** The last observation of any side, in ms since 1970; undefined before the first. */
  observedAt: number | undefined;
  /** Everything that must be mended by a person; null when nothing must. */
  failure: string | null;
}

/** Only what was said lately counts, and a side that could not be asked since does not say that it works. */
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
  // Slurm's reports say themselves which of its hosts are away; an API server is one host.
  if (side === 'kubernetes' && observeFailure) return [[side, unreachable(report, observeFailure)]];
  return [[side, applyFailure === undefined ? report : withMessage(report, applyFailure)]];
}

/** A condition is about the configuration that was in force on its side. */
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

/** It works; what does not may be about some people only. */
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

/** Why changes do not come into force on one side; null when nothing stands in their way. */
export function sideFailure(state: SideState): string | null {
  return [...new Set(faultsOf(state))].join(' ') || null;
}

/** What a person must mend on one side, also where changes come into force; null when nothing. */
export function sideTrouble(state: SideState): string | null {
  return [...new Set(troublesOf(state))].join(' ') || null;
}

/** Nothing else is wrong, and the scheduler does not work all the same: a daemon or its host is down. */
export function schedulerTrouble(state: SideState): ConditionReport | undefined {
  const ready = state.observation?.report.scheduler?.ready;
  const isTrouble = ready !== undefined && ready.status !== 'True' && ready.reason !== beginning;
  return isTrouble && faultsOf(state).length === 0 ? ready : undefined;
}

/** The reason of a scheduler that was never ready yet. */
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

/** What several parts of a side say, with what they say alike once. */
export function sentencesOf(texts: readonly (string | null | undefined)[]): string[] {
  return [...new Set(texts.flatMap((text) => text?.split(/(?<=\.) (?=\p{Lu})/u) ?? []))];
}

/**
 * A machine that both know by the same name is one: what Slurm says of it, and of the rest what Kubernetes does. Who holds
 * its GPUs only Slurm knows: for Kubernetes Slurm's own pod does, all the time.
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

/** What one of them has, the cluster has. What neither has, and one could not say, is not known. */
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

/** The part of a Slurm report that is kept whole: everything but the accounts and GPU time, which have rows. */
export type KeptSlurmReport = Omit<SlurmReport, 'accounts' | 'gpuDays'> & {
  /** When the controller last answered, where it was silent in this report. RFC 3339. */
  controllerHeardAt?: string;
};

/** Who did not answer, and since when. Reports of other sides have none of it. */
export type Silence = Pick<KeptSlurmReport, 'silent' | 'waiting' | 'controllerHeardAt'>;

/** A report completed from the one before: since when hosts wait, and when a silent controller last answered. */
export function withSilence<R extends Silence>(
  report: R,
  before: { report: Silence; at: string } | undefined,
  at: string,
): R {
  const { waiting, silent } = report;
  const earlier = new Map(before?.report.waiting?.map((one) => [one.host, one.since]));
  return {
    ...report,
    ...(waiting && { waiting: waiting.map((one) => ({ since: earlier.get(one.host) ?? at, ...one })) }),
    ...(silent && { controllerHeardAt: before?.report.controllerHeardAt ?? before?.at ?? at }),
  };
}

/** A report whose conditions all say since when: the driver's time, else the earlier report's while nothing turned. */
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
  /** In ms since 1970: when the cluster's controller, or its API server, last answered. */
  observedAt: number;
  /** The accepted list that is in force there; 0 before the first, and where there is none. */
  manifestGeneration: number;
  desiredGeneration: number;
  /** The version of the organization's list that its accounts are of; 0: of none. */
  listVersion: number;
  /** In words, what must be mended there by a person; null when nothing must. */
  failure: string | null;
  /** Hosts that have not confirmed the newest list, those that are furthest behind first. */
  waiting: readonly WaitingHost[];
  report: S extends 'slurm' ? KeptSlurmReport : SideReport;
}

/** Those that have not confirmed a version of the organization's list, which is of those that wait at all. */
export function waitingFor(
  version: number,
  { waiting = [] }: Pick<Silence, 'waiting'>,
): readonly WaitingHost[] {
  return waiting.filter(({ listVersion = 0 }) => listVersion < version);
}

const mostNamed = 5;

/** In words, which hosts wait and since when; undefined where none does. */
export function waitingText(waiting: readonly WaitingHost[]): string | undefined {
  if (waiting.length === 0) return undefined;
  const named = waiting
    .slice(0, mostNamed)
    .map(({ host, since, message }) => `${host}${since === undefined ? '' : ` since ${since}`} (${message})`);
  const more = waiting.length > mostNamed ? `, and ${waiting.length - mostNamed} more` : '';
  return `Hosts that have not confirmed it: ${named.join(', ')}${more}.`;
}

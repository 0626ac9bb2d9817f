/** What a side of a cluster reported last, as it is kept. */
import type { ConditionReport, SideReport, SlurmReport, WaitingHost } from '../access/manifest.ts';
import type { Side } from './cluster.ts';

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

/** Conditions: whether a part of a cluster works (contract, "Cluster options"). */
import type { ConditionReport, SideReport } from '../access/manifest.ts';

export interface Condition extends ConditionReport {
  type: 'SUNKReady' | 'ControlPlaneAvailable' | 'StorageReady';
  observedGeneration: number;
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

/** How far a Slurm configuration has come, from what its cluster reported last. */
import { isRecent } from '../access/list.ts';
import type { ConditionReport } from '../access/manifest.ts';
import { type ClusterState, isInService } from '../clusters/cluster.ts';

/** Times in ms since 1970. */
export interface StatusFacts {
  clusterState: ClusterState;
  hasSlurm: boolean;
  /** The configuration version that the cluster is to have, and the one that the platform has passed on. */
  desiredGeneration: number;
  passedOnGeneration: number;
  /** The newest configuration; undefined while there is none. */
  newest: { desiredGeneration: number } | undefined;
  observation:
    | {
        observedAt: number;
        /** The configuration version that is in force there. */
        desiredGeneration: number;
        ready: ConditionReport | undefined;
        failure: string | null;
      }
    | undefined;
  /** Why the cluster could not be looked at, or changed, when that was last tried. */
  observeFailure: string | undefined;
  applyFailure: string | undefined;
  now: number;
}

export interface ConfigurationStatus {
  state:
    | 'never_written'
    | 'saved'
    | 'applying'
    | 'in_force'
    | 'refused'
    | 'failed'
    | 'unknown'
    | 'no_slurm'
    | 'not_in_service';
  message?: string;
}

/** What a cluster says of a configuration that it tried and did not take (docs/decisions/0015). */
export const rejectedReason = 'ConfigurationRejected';

export function configurationStatus(facts: StatusFacts): ConfigurationStatus {
  const { newest, observation, observeFailure, applyFailure, desiredGeneration } = facts;
  if (!isInService({ state: facts.clusterState })) return { state: 'not_in_service' };
  if (!newest) return { state: 'never_written' };
  if (!facts.hasSlurm) return { state: 'no_slurm' };
  if (observeFailure !== undefined) return { state: 'unknown', message: observeFailure };
  if (observation && !isRecent(observation.observedAt, facts.now)) return { state: 'unknown' };
  if (observation && observation.desiredGeneration >= newest.desiredGeneration) return { state: 'in_force' };
  const { ready } = observation ?? {};
  // What was said of an earlier configuration is not said of this one.
  const isAbout = ready?.status === 'False' && (ready.observedGeneration ?? 0) >= newest.desiredGeneration;
  if (isAbout) {
    const { reason, message } = ready;
    const state = reason === rejectedReason ? 'refused' : 'failed';
    return { state, ...(message !== undefined && { message }) };
  }
  if (applyFailure !== undefined) return { state: 'failed', message: applyFailure };
  return { state: facts.passedOnGeneration >= desiredGeneration ? 'applying' : 'saved' };
}

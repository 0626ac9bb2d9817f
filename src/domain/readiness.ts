/** Whether a person can log in to a cluster now, and if not, what they wait for (contract, "SSH access object"). */
import { isRecent } from './access-list.ts';

export type ReadinessReason =
  | 'ready'
  | 'no_keys'
  | 'access_not_projected'
  | 'projection_pending'
  | 'gateway_unavailable'
  | 'observation_stale'
  | 'cluster_inactive'
  | 'named_user_required';

/** What is known of one person on one cluster. Generations are 0 when unknown; times in ms since 1970. */
export interface AccessFacts {
  clusterState: string;
  hasUsername: boolean;
  activeKeys: number;
  /** The caller's key set now, and the one that the cluster confirmed. */
  keySetGeneration: number;
  observedKeySetGeneration: number;
  /** Whether the cluster takes access lists at all: a Kubernetes-only one does not, and has no login node either. */
  takesAccessList: boolean;
  /** Whether the list that Platform accepted has the caller in it. */
  inManifest: boolean;
  listGeneration: number;
  observedManifestGeneration: number;
  gatewayUp: boolean;
  observedAt: number | undefined;
  now: number;
}

/** The first thing that stands in the way, in the order in which a person would have to see to them. */
export function readinessReason(facts: AccessFacts): ReadinessReason {
  if (facts.clusterState !== 'active') return 'cluster_inactive';
  if (!facts.hasUsername) return 'named_user_required';
  if (facts.activeKeys === 0) return 'no_keys';
  if (facts.takesAccessList && !facts.inManifest) return 'access_not_projected';
  if (!facts.gatewayUp) return 'gateway_unavailable';
  if (!hasRecentObservation(facts)) return 'observation_stale';
  if (facts.observedManifestGeneration < facts.listGeneration) return 'projection_pending';
  if (facts.observedKeySetGeneration !== facts.keySetGeneration) return 'projection_pending';
  return 'ready';
}

/** Whether the cluster's latest report is recent and covers the newest access list. */
export function isObservationCurrent(facts: AccessFacts): boolean {
  return hasRecentObservation(facts) && facts.observedManifestGeneration >= facts.listGeneration;
}

function hasRecentObservation(facts: AccessFacts): boolean {
  return facts.observedAt !== undefined && isRecent(facts.observedAt, facts.now);
}

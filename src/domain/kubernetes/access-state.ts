/** Whether a person's permissions on the Kubernetes side of a cluster are there as they should be. */
import { type KubernetesAccess, permissionIds } from './bindings.ts';

type AccessState =
  /** They are there as they should be. */
  | 'applied'
  /** They are on their way; what was taken away may still be there. */
  | 'pending'
  /** Something stands in the way, which `message` names. */
  | 'failed'
  /** The cluster has not said so lately. */
  | 'unknown'
  /** There are none, and should be none. */
  | 'none';

export interface Access<State extends AccessState = AccessState> {
  state: State;
  message?: string;
}

/** What is known of the permissions on a cluster. */
export interface BoundFacts {
  /** What is in force there, by ID; undefined until a pass has reported it. */
  bound: readonly string[] | undefined;
  isReachable: boolean;
  failure: string | undefined;
}

export interface KubernetesAccessFacts extends BoundFacts {
  /** What the person should have on the cluster now: nothing that has lapsed. */
  access: KubernetesAccess;
  userId: string;
  /** The IDs of all grants that the person ever had there, so that one that should be gone is known by them. */
  everGranted: readonly string[];
}

export function kubernetesAccessState(facts: KubernetesAccessFacts): Access {
  const { access, userId, everGranted } = facts;
  const wanted = permissionIds(access);
  return observedState(facts, (bound) => {
    const own = bound.filter((id) => id.startsWith(`${userId}.`) || everGranted.includes(id));
    if (own.length !== wanted.length || !wanted.every((id) => own.includes(id))) return undefined;
    return wanted.length === 0 ? 'none' : 'applied';
  });
}

export function grantAccessState(
  grantId: string,
  facts: BoundFacts,
): Access<'applied' | 'pending' | 'failed' | 'unknown'> {
  return observedState(facts, (bound) => (bound.includes(grantId) ? 'applied' : undefined));
}

/** `settled` gives the state where it is as it should be. */
function observedState<State extends AccessState>(
  { bound, isReachable, failure }: BoundFacts,
  settled: (bound: readonly string[]) => State | undefined,
): Access<State | 'pending' | 'failed' | 'unknown'> {
  const message = failure === undefined ? {} : { message: failure };
  if (!bound || !isReachable) return { state: 'unknown', ...message };
  const state = settled(bound);
  if (state !== undefined) return { state };
  return { state: failure === undefined ? 'pending' : 'failed', ...message };
}

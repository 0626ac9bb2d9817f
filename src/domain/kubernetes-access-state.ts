/** Whether a person's permissions on the Kubernetes side of a cluster are there as they should be. */
import { type KubernetesAccess, permissionIds } from './kubernetes-bindings.ts';

export type AccessState =
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

export interface KubernetesAccessFacts {
  /** What the person should have on the cluster now: nothing that has lapsed. */
  access: KubernetesAccess;
  userId: string;
  /** What is in force there, by ID; undefined until a pass has told. */
  bound: readonly string[] | undefined;
  /** The IDs of all grants that the person ever had there, so that one that should be gone is known by them. */
  everGranted: readonly string[];
  isReachable: boolean;
  failure: string | undefined;
}

export function kubernetesAccessState(facts: KubernetesAccessFacts): {
  state: AccessState;
  message?: string;
} {
  const { access, userId, bound, everGranted, isReachable, failure } = facts;
  const wanted = permissionIds(access);
  if (!bound || !isReachable) {
    return { state: 'unknown', ...(failure === undefined ? {} : { message: failure }) };
  }
  const own = bound.filter((id) => id.startsWith(`${userId}.`) || everGranted.includes(id));
  const isAsWanted = own.length === wanted.length && wanted.every((id) => own.includes(id));
  if (isAsWanted) return { state: wanted.length === 0 ? 'none' : 'applied' };
  return failure === undefined ? { state: 'pending' } : { state: 'failed', message: failure };
}

import { useQuery } from '@tanstack/react-query';
import { readClusters, readOperatorClusters } from './reads.ts';
import { holdsStaff, useWho } from './who.tsx';

/** The clusters that a person sees, or all, which operators see. */
export type Whose = 'own' | 'all';

/** What clusters are called, by ID. */
export function useClusterNames(whose: Whose = 'own'): ReadonlyMap<string, string> {
  const who = useWho();
  const isOwn = whose === 'own';
  const own = useQuery({ ...readClusters(who), enabled: isOwn });
  const all = useQuery({ ...readOperatorClusters(), enabled: !isOwn && holdsStaff(who, 'staff.read') });
  return new Map([
    ...(own.data ?? []).map(({ id, spec }) => [id, spec.name] as const),
    ...(all.data?.clusters ?? []).map(({ cluster, name }) => [cluster.id, name] as const),
  ]);
}

/** What owners read of people: what they reach, their grants, and what a change of them would do. */
import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';
import type { Step } from './parts/strip.tsx';
import type { Who } from './who.tsx';

export type Person = components['schemas']['MemberAccess'];
export type OnCluster = components['schemas']['AccessToCluster'];
export type Way = components['schemas']['WayIn'];
export type Delivery = components['schemas']['ClusterDelivery'];
export type MemberChange = components['schemas']['MemberChange'];
export type MemberPlan = components['schemas']['MemberPlan'];
export type Grant = components['schemas']['OperatorGrant'];
export type AccessList = components['schemas']['AccessList'];

/** `clusterIds`: those whose reports change the answer; where the reader may not list them, none: then any report does. */
export const readAccessOf = (orgID: string, userIds: readonly string[], clusterIds: readonly string[]) =>
  queryOptions({
    queryKey: ['people', orgID, userIds],
    meta: { topics: [`members/${orgID}`, 'me', ...topicsOf(clusterIds)] },
    queryFn: async () => {
      const params = { path: { orgID }, query: { user_ids: userIds.join(',') } };
      return bodyOf(await business.GET('/organizations/{orgID}/access', { params }));
    },
  });

function topicsOf(clusterIds: readonly string[]): string[] {
  return clusterIds.length === 0 ? ['cluster/*'] : clusterIds.map((id) => `cluster/${id}`);
}

/** Null for who may not grant. */
export const readGrants = ({ orgID, isDecider }: Who) =>
  queryOptions({
    queryKey: ['grants', orgID, isDecider],
    meta: { topics: [`members/${orgID}`, `organization/${orgID}`, 'me', 'installation'] },
    queryFn: async () => {
      if (!isDecider) return null;
      const answer = await business.GET('/organizations/{orgID}/grants', { params: { path: { orgID } } });
      return answer.response.status === 403 ? null : bodyOf(answer).grants;
    },
  });

/** The access list of a Slurm cluster; null where there is none, and for who may not see clusters. */
export const readAccessList = ({ orgID, permissions }: Who, clusterID: string) =>
  queryOptions({
    queryKey: ['access-list', orgID, clusterID, permissions.has('clusters.read')],
    meta: { topics: [`members/${orgID}`, `cluster/${clusterID}`, 'me'] },
    queryFn: async () => {
      if (!permissions.has('clusters.read')) return null;
      const params = { path: { orgID, clusterID } };
      const answer = await business.GET('/organizations/{orgID}/clusters/{clusterID}/access', { params });
      return answer.response.status === 404 ? null : bodyOf(answer);
    },
  });

export const readPlan = (orgID: string, changes: MemberChange[]) =>
  queryOptions({
    queryKey: ['member-plan', orgID, changes],
    meta: { topics: [`members/${orgID}`] },
    gcTime: 0,
    queryFn: async () => {
      const params = { path: { orgID } };
      return bodyOf(
        await business.POST('/organizations/{orgID}/members/plan', { params, body: { changes } }),
      );
    },
  });

/** How a way is said, such as `clusters.configure` or `developer in ml`. */
export function wayText({ by, name, scope }: Way): string {
  if (by === 'role') return `as ${name}`;
  if (by === 'permission') return name;
  return `grant: ${name.replace('kubernetes.', '')}${scope === undefined ? '' : ` in ${scope}`}`;
}

export const opensText: Record<Way['opens'], string> = {
  see: 'see it',
  ssh: 'SSH',
  'ssh.admin': 'SSH, as administrator',
  kubernetes: 'Kubernetes',
  'kubernetes.admin': 'Kubernetes, as cluster-admin',
};

/** How far the last change of some people has come on one cluster, and what is missing, in words. */
export function progressOf(
  people: readonly Person[],
  { cluster_id: clusterId, failure }: Delivery,
): { steps: Step[]; missing: string | undefined; isThere: boolean } {
  const on = people.flatMap((person) => person.clusters.filter((one) => one.cluster_id === clusterId));
  const desiredAt = people
    .flatMap(({ changed_at: at }) => at ?? [])
    .sort()
    .at(-1);
  const slurm = on.flatMap((one) => one.slurm ?? []);
  const kubernetes = on.flatMap((one) => one.kubernetes ?? []);
  const states = [...slurm, ...kubernetes].map(({ state }) => state);
  const there = states.filter((state) => state === 'applied' || state === 'none').length;
  const isThere = there === states.length;
  const isAccepted = slurm.every(({ accepted }) => accepted);
  const hasFailed = states.includes('failed');
  const isUnknown = states.includes('unknown');
  const applied = isThere ? 'done' : hasFailed ? 'failed' : isAccepted ? 'busy' : 'waiting';
  const steps: Step[] = [
    { name: 'desired', state: 'done', at: desiredAt },
    ...(slurm.length > 0 ? [{ name: 'accepted', state: isAccepted ? 'done' : 'busy' } as const] : []),
    { name: 'applied', state: applied },
    {
      name: 'observed',
      state: isThere ? 'done' : isUnknown ? 'failed' : 'waiting',
    },
  ];
  const reason = [...slurm, ...kubernetes].flatMap(({ message }) => message ?? [])[0] ?? failure;
  const count = people.length > 1 ? ` ${there} of ${states.length} done.` : '';
  const missing = isThere
    ? undefined
    : hasFailed
      ? `${reason ?? 'The cluster could not apply it.'}${count}`
      : isUnknown
        ? `The cluster has not reported recently, so its state is unknown.${count}`
        : `${isAccepted ? 'The next sync applies it.' : 'The access list does not include it yet.'}${count}`;
  return { steps, missing, isThere };
}

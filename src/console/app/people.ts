/** What owners read of people: what they reach, their grants, and what a change of them would do. */
import type { components } from '../../api/generated/business.ts';
import { bodyOf, bodyOrNull, business } from './api.ts';
import type { Step } from './parts/strip.tsx';
import { of, read } from './reads.ts';
import type { Who } from './who.tsx';

export type Person = components['schemas']['MemberAccess'];
export type OnCluster = components['schemas']['AccessToCluster'];
export type Way = components['schemas']['WayIn'];
export type Delivery = components['schemas']['ClusterDelivery'];
export type MemberChange = components['schemas']['MemberChange'];
export type MemberPlan = components['schemas']['MemberPlan'];
export type Grant = components['schemas']['OperatorGrant'];
export type AccessList = components['schemas']['AccessList'];

/** What people reach, and how far each cluster has it. */
export const readAccessOf = (orgID: string, userIds: readonly string[]) =>
  read(['people', orgID, userIds], [`members/${orgID}`, 'me', 'cluster/*'], () => {
    const params = { path: { orgID }, query: { user_ids: userIds.join(',') } };
    return business.GET('/organizations/{orgID}/access', { params }).then(bodyOf);
  });

/** Null for who may not grant. */
export const readGrants = ({ orgID, isDecider }: Who) =>
  read(
    ['grants', orgID, isDecider],
    [`members/${orgID}`, `organization/${orgID}`, 'me', 'installation'],
    async () => {
      if (!isDecider) return null;
      const answer = await business.GET('/organizations/{orgID}/grants', of({ orgID }));
      return bodyOrNull(answer, 403)?.grants ?? null;
    },
  );

/** The access list of a Slurm cluster; null where there is none, and for who may not see clusters. */
export const readAccessList = ({ orgID, permissions }: Who, clusterID: string) =>
  read(
    ['access-list', orgID, clusterID, permissions.has('clusters.read')],
    [`members/${orgID}`, `cluster/${clusterID}`, 'me'],
    async () => {
      if (!permissions.has('clusters.read')) return null;
      const path = '/organizations/{orgID}/clusters/{clusterID}/access';
      return bodyOrNull(await business.GET(path, of({ orgID, clusterID })), 404);
    },
  );

export const readPlan = (orgID: string, changes: MemberChange[]) => ({
  ...read(['member-plan', orgID, changes], [`members/${orgID}`], () => {
    const options = { ...of({ orgID }), body: { changes } };
    return business.POST('/organizations/{orgID}/members/plan', options).then(bodyOf);
  }),
  gcTime: 0,
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

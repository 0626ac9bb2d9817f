/** What owners read of people: their access, their grants, and what a change of them would do. */
import type { components } from '../../api/generated/business.ts';
import { type WayIn, waysIn } from '../../domain/access/ways-in.ts';
import { bodyOf, bodyOrNull, business } from './api.ts';
import type { Step } from './parts/strip.tsx';
import { installationTopics, of, read } from './reads.ts';
import type { Who } from './who.tsx';

export type Person = components['schemas']['MemberAccess'];
export type OnCluster = components['schemas']['AccessToCluster'];
export type Way = components['schemas']['WayIn'];
export type Delivery = components['schemas']['ClusterDelivery'];
export type MemberChange = components['schemas']['MemberChange'];
export type MemberPlan = components['schemas']['MemberPlan'];
export type Grant = components['schemas']['OperatorGrant'];
export type AccessList = components['schemas']['AccessList'];

/** What people have access to, and how far each cluster has it. */
export const readAccessOf = (orgID: string, userIds: readonly string[]) =>
  read(['people', orgID, userIds], [`members/${orgID}`, 'me', 'cluster/*'], () => {
    const params = { path: { orgID }, query: { user_ids: userIds.join(',') } };
    return business.GET('/organizations/{orgID}/access', { params }).then(bodyOf);
  });

/** Null for a person who may not grant. */
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

/** The access list of a Slurm cluster; null where there is none, and for a person who may not see clusters. */
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

/** What deactivating a person would do, on the clusters of all their organizations. */
export const readDeactivation = (userID: string) => ({
  ...read(['deactivation', userID], installationTopics, () =>
    business.GET('/operator/people/{userID}/deactivation', of({ userID })).then(bodyOf),
  ),
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

interface Reached {
  /** What is wanted: its name, and since when. */
  desired: Pick<Step, 'name' | 'at'>;
  /** Whether the list is accepted; undefined where there is none. */
  isAccepted: boolean | undefined;
  state: 'there' | 'rejected' | 'failed' | 'unknown' | 'pending';
}

/** How far a list of people has come on a cluster. */
export function deliverySteps({ desired, isAccepted, state }: Reached): Step[] {
  const isThere = state === 'there';
  const missing = isAccepted === false ? 'waiting' : 'busy';
  return [
    { ...desired, state: 'done' },
    ...(isAccepted === undefined
      ? []
      : [
          {
            name: 'accepted',
            state: isAccepted ? 'done' : state === 'rejected' ? 'failed' : 'busy',
          } as const,
        ]),
    { name: 'applied', state: isThere ? 'done' : state === 'failed' ? 'failed' : missing },
    { name: 'observed', state: isThere ? 'done' : state === 'unknown' ? 'failed' : 'waiting' },
  ];
}

/** How far the last change of some people has come on one cluster, and what is missing, in words. */
export function progressOf(people: readonly Person[], { cluster_id: clusterId, failure }: Delivery) {
  const on = people.flatMap((person) => person.clusters.filter((one) => one.cluster_id === clusterId));
  const [at] = people
    .flatMap(({ changed_at: changed }) => changed ?? [])
    .sort()
    .reverse();
  const slurm = on.flatMap((one) => one.slurm ?? []);
  const sides = [...slurm, ...on.flatMap((one) => one.kubernetes ?? [])];
  const there = sides.filter(({ state }) => state === 'applied' || state === 'none').length;
  const isThere = there === sides.length;
  const has = (wanted: 'failed' | 'unknown') => sides.some(({ state }) => state === wanted);
  const state = isThere ? 'there' : has('failed') ? 'failed' : has('unknown') ? 'unknown' : 'pending';
  const isListed = slurm.every(({ accepted }) => accepted);
  const isAccepted = slurm.length === 0 ? undefined : isListed;
  const reason = sides.flatMap(({ message }) => message ?? [])[0] ?? failure;
  const missing = {
    there: undefined,
    failed: reason ?? 'The cluster could not apply it.',
    unknown: 'The cluster has not reported recently, so its state is unknown.',
    pending: isListed ? 'The next sync applies it.' : 'The access list does not include it yet.',
  }[state];
  const done = people.length > 1 ? ` ${there} of ${sides.length} done.` : '';
  return {
    steps: deliverySteps({ desired: { name: 'desired', at }, isAccepted, state }),
    missing: missing && `${missing}${done}`,
    isThere,
  };
}

type Membership = Pick<components['schemas']['Membership'], 'user_id'> &
  Partial<Pick<components['schemas']['Membership'], 'role' | 'updated_at'>>;

type Granted = components['schemas']['MemberPermissions'];

/** Of a member, or (without a role) of a person who only holds grants. */
export function waysOf(
  sides: { slurm: boolean; kubernetes: boolean },
  { user_id: userId, role, updated_at: updatedAt = '' }: Membership,
  { permissions, expires_at: ends = {} }: Partial<Pick<Granted, 'permissions' | 'expires_at'>>,
  grants: readonly Grant[],
): Way[] {
  const own = grants.filter(({ grant }) => grant.user_id === userId);
  const there = (['slurm', 'kubernetes'] as const).filter((side) => sides[side]);
  const granted = (permissions ?? []).map((key) => ({ key, expiresAt: ends[key] ?? null }));
  const ways = waysIn(there, role && { role, granted, updatedAt }, own.map(grantOf));
  return ways.map(wayOf);
}

function wayOf({ roleId, grantId, ...way }: WayIn): Way {
  return {
    ...way,
    ...(roleId !== undefined && { role_id: roleId }),
    ...(grantId !== undefined && { grant_id: grantId }),
  };
}

function grantOf({ grant, cluster_name: clusterName }: Grant) {
  return {
    id: grant.id,
    clusterId: grant.resource_id,
    clusterName,
    userId: grant.user_id,
    email: grant.username,
    relation: grant.relation,
    scope: grant.scope ?? null,
    roleId: grant.role_id ?? null,
    expiresAt: grant.expires_at ?? null,
    grantedBy: grant.granted_by,
    grantedAt: grant.granted_at,
  };
}

/** Reads for managers: people's access and grants, the access review, and plans of what a change would do. */
import { type UseQueryOptions, useIsMutating, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { components, paths } from '../../api/generated/business.ts';
import { bodyOf, bodyOrNull, business } from './api.ts';
import type { Step } from './parts/strip.tsx';
import { type Column, type Order, type Remote, useFilterInAddress } from './parts/table.tsx';
import { count } from './parts/values.tsx';
import { installationTopics, of, read, useWho, type Who } from './reads.ts';

export type MemberAccess = components['schemas']['MemberAccess'];
export type ClusterAccess = components['schemas']['AccessToCluster'];
export type Way = components['schemas']['WayIn'];
export type Delivery = components['schemas']['ClusterDelivery'];
export type MemberChange = components['schemas']['MemberChange'];
export type MemberPlan = components['schemas']['MemberPlan'];
export type AccessList = components['schemas']['AccessList'];

export const readAccessOf = (orgID: string, userIds: readonly string[]) =>
  read(['people', orgID, userIds], [`members/${orgID}`, 'me', 'cluster/*'], () => {
    const params = { path: { orgID }, query: { user_ids: userIds.join(',') } };
    return business.GET('/organizations/{orgID}/access', { params }).then(bodyOf);
  });

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

export const readKeyPlan = (revoke?: string) => ({
  ...read(['key-plan', revoke], ['me'], () => {
    const params = { query: revoke === undefined ? {} : { revoke } };
    return business.GET('/me/ssh-keys/plan', { params }).then(bodyOf);
  }),
  gcTime: 0,
});

export const readDeactivation = (userID: string) => ({
  ...read(['deactivation', userID], installationTopics, () =>
    business.GET('/operator/people/{userID}/deactivation', of({ userID })).then(bodyOf),
  ),
  gcTime: 0,
});

interface DeliveryState {
  desired: Pick<Step, 'name' | 'at'>;
  /** Whether the access list is accepted; undefined where there is no list. */
  isAccepted: boolean | undefined;
  state: 'there' | 'failed' | 'unknown' | 'pending';
}

export function deliverySteps({ desired, isAccepted, state }: DeliveryState): Step[] {
  const isThere = state === 'there';
  const missing = isAccepted === false ? 'waiting' : 'busy';
  return [
    { ...desired, state: 'done' },
    ...(isAccepted === undefined ? [] : [{ name: 'accepted', state: isAccepted ? 'done' : 'busy' } as const]),
    { name: 'applied', state: isThere ? 'done' : state === 'failed' ? 'failed' : missing },
    { name: 'observed', state: isThere ? 'done' : state === 'unknown' ? 'failed' : 'waiting' },
  ];
}

export function progressOf(people: readonly MemberAccess[], { cluster_id: clusterId, failure }: Delivery) {
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

export type Reviewed = components['schemas']['ReviewedPerson'];
type Query = NonNullable<paths['/organizations/{orgID}/access-review']['get']['parameters']['query']>;

const path = '/organizations/{orgID}/access-review';
const atFirst = 50;
const mostRows = 10_000;
const typingMs = 150;

const readReview = (orgID: string, query: Query) => ({
  ...read(
    ['review', orgID, query.cluster ?? query.at, query],
    [
      `members/${orgID}`,
      `organization/${orgID}`,
      'me',
      query.cluster ? `cluster/${query.cluster}` : 'cluster/*',
    ],
    () => business.GET(path, { params: { path: { orgID }, query } }).then(bodyOf),
  ),
  // While another part of the same list loads, the earlier one stays on the screen.
  placeholderData: <T>(before: T | undefined, of?: { queryKey: readonly unknown[] }) =>
    of?.queryKey[1] === orgID && of.queryKey[2] === (query.cluster ?? query.at) ? before : undefined,
});

/**
 * The access review of one cluster or all, also as of a past time (RFC 3339). `columns` give the server's names of sort orders.
 */
export function useReview(
  columns: readonly Pick<Column<Reviewed>, 'name' | 'sort'>[],
  { cluster, at }: Pick<Query, 'cluster' | 'at'>,
) {
  const { orgID } = useWho();
  const [filter, setFilter] = useFilterInAddress();
  const [order, setOrder] = useState<Order>();
  const [limit, setLimit] = useState(atFirst);
  const wanted = useSettled(filter.trim(), typingMs);
  const sort = columns.find(({ name }) => name === order?.name)?.sort as Query['sort'];
  const all: Query = {
    ...(cluster !== undefined && { cluster }),
    ...(at !== undefined && { at }),
    ...(sort && order && { sort, order: order.isDescending ? 'descending' : 'ascending' }),
  };
  const review = useQuery(readReview(orgID, { ...all, ...(wanted !== '' && { filter: wanted }), limit }));
  const isOther = review.isPlaceholderData || wanted !== filter.trim();
  const remote: Remote = {
    ...{ filter, setFilter, order, setOrder },
    total: isOther && limit === atFirst ? undefined : review.data?.total,
    more: () => setLimit(Math.min(limit * 5, mostRows)),
  };
  // The file has everyone, whatever the filter: its readers could not see that people are missing.
  const csv = async () => {
    const params = { path: { orgID }, query: all };
    return bodyOf(await business.GET(`${path}/csv`, { params, parseAs: 'text' }));
  };
  return { review, remote, csv };
}

/** Members whose access ends by the last review, up to a limit; the next ones show once some are kept. */
export function useDue() {
  const { orgID, isDecider } = useWho();
  const query = { due: true, sort: 'email', limit: 1_000 } as const;
  return useQuery({ ...readReview(orgID, query), enabled: isDecider });
}

export type Team = components['schemas']['Team'];

const readTeams = (orgID: string) =>
  read(['teams', orgID], [`members/${orgID}`], async () => {
    const { teams } = bodyOf(await business.GET('/organizations/{orgID}/teams', of({ orgID })));
    return teams;
  });

export function useTeams() {
  return useQuery(readTeams(useWho().orgID));
}

/** Debounces a text: returns it once it has not changed for `forMs`. */
export function useSettled(text: string, forMs: number): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), forMs);
    return () => clearTimeout(timer);
  }, [text, forMs]);
  return settled;
}

export type Effect = MemberPlan['clusters'][number];

export function jobsOf({ ended_jobs: jobs, other_jobs: more = 0 }: Effect): number {
  return jobs.length + more;
}

/** Reads a plan, but not while the form is sent: it would plan a change that is already made. */
export function useReadPlan(reading: UseQueryOptions<MemberPlan>) {
  const isSending = useIsMutating() > 0;
  const enabled = reading.enabled !== false && !isSending;
  const { data: plan, error, isPending } = useQuery({ ...reading, enabled });
  return { plan, error, isWaiting: isPending && error === null };
}

/** The jobs that a change would end, which needs a separate confirmation: `3 running jobs`. */
export function endedBy(plan: MemberPlan | undefined): string | undefined {
  const sum = plan?.clusters.reduce((all, one) => all + jobsOf(one), 0) ?? 0;
  if (sum === 0) return plan?.clusters.some((one) => one.unknown_jobs) ? 'running jobs' : undefined;
  return count(sum, 'running job');
}

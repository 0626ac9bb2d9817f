/** Everyone with access, as the server filters, sorts and cuts them: one read a list, and the file of it from the same read. */
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { components, paths } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';
import { type Column, type Order, type Remote, useFilterInAddress } from './parts/table.tsx';
import { read } from './reads.ts';
import { useWho } from './who.tsx';

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
  // While another part of the same list is read, the one before stays.
  placeholderData: <T>(before: T | undefined, of?: { queryKey: readonly unknown[] }) =>
    of?.queryKey[1] === orgID && of.queryKey[2] === (query.cluster ?? query.at) ? before : undefined,
});

/**
 * The list, of one cluster or of all, or of all as it was at a time (RFC 3339); `columns` say what the server calls their orders.
 */
export function useReview(
  columns: readonly Pick<Column<Reviewed>, 'name' | 'sort'>[],
  { cluster, at }: Pick<Query, 'cluster' | 'at'>,
) {
  const { orgID } = useWho();
  const [filter, setFilter] = useFilterInAddress();
  const [order, setOrder] = useState<Order>();
  const [limit, setLimit] = useState(atFirst);
  const wanted = useSettled(filter.trim());
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
  // Everyone, whatever the filter: what is handed on must not lack people silently.
  const csv = async () => {
    const params = { path: { orgID }, query: all };
    return bodyOf(await business.GET(`${path}/csv`, { params, parseAs: 'text' }));
  };
  return { review, remote, csv };
}

/** Members to whose access the last review gave an end; more are shown once some are kept. */
export function useDue() {
  const { orgID, isDecider } = useWho();
  const query = { due: true, sort: 'email', limit: 1_000 } as const;
  return useQuery({ ...readReview(orgID, query), enabled: isDecider });
}

/** What is typed, once it was left alone for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), typingMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** SSH sessions that are over, as pages are addressed by and read them. */
import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';
import { dayOf, numberOf, timesOf } from './operator.ts';
import { textOf } from './search.ts';

export type PastSession = components['schemas']['PastSession'];
/** Whose: everybody's, for operators, or one's own. */
export type Whose = 'all' | 'own';

/** Days are those of the reader. */
export interface SessionSearch {
  /** An address or an ID. */
  person?: string | undefined;
  /** A name or an ID. */
  cluster?: string | undefined;
  /** Where from. */
  address?: string | undefined;
  /** A fingerprint or an ID. */
  key?: string | undefined;
  from?: string | undefined;
  /** Included. */
  to?: string | undefined;
  /** The number that the page begins below. */
  before?: number | undefined;
  filter?: string | undefined;
}

/** What cannot be meant is undefined, not left out: the router would keep it as it came. */
export function sessionSearch(search: Record<string, unknown>): SessionSearch {
  const { person, cluster, address, key, from, to, before, filter } = search;
  return {
    person: textOf(person),
    cluster: textOf(cluster),
    address: textOf(address),
    key: textOf(key),
    from: dayOf(from),
    to: dayOf(to),
    before: numberOf(before),
    filter: textOf(filter),
  };
}

export const sessionPageSize = 100;

/** What the operation is asked for. */
export function sessionQuery({ filter: _inPage, before, from, to, ...about }: SessionSearch, whose: Whose) {
  const given = whose === 'own' ? [] : Object.entries(about).filter(([, value]) => value !== undefined);
  return {
    limit: sessionPageSize,
    ...(Object.fromEntries(given) as { [Name in keyof typeof about]?: string }),
    ...timesOf({ from, to }),
    ...(before !== undefined && { after: before }),
  };
}

export type SessionQuery = ReturnType<typeof sessionQuery>;

export async function fetchSessions(whose: Whose, query: SessionQuery, signal?: AbortSignal) {
  const options = { params: { query }, ...(signal && { signal }) };
  const answer =
    whose === 'own'
      ? await business.GET('/me/ssh-sessions/past', options)
      : await business.GET('/operator/sessions/past', options);
  return bodyOf(answer).sessions;
}

export const readPastSessions = (whose: Whose, search: SessionSearch) => {
  const query = sessionQuery(search, whose);
  return queryOptions({
    queryKey: ['past-sessions', whose, query],
    meta: { topics: whose === 'own' ? ['my-ssh-sessions'] : ['ssh-sessions'] },
    queryFn: () => fetchSessions(whose, query),
  });
};

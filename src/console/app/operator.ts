/** What the pages of operators are addressed by, and read from. */
import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';
import { textOf } from './search.ts';

export type AuditEntry = components['schemas']['AuditEntry'];
export type Session = components['schemas']['Session'];

/** The filters of the audit trail, as its address has them. Days are those of the reader. */
export interface AuditSearch {
  /** An address or an ID. */
  person?: string | undefined;
  /** A name or an ID. */
  cluster?: string | undefined;
  /** With `*` at the end: all that begin so. */
  operation?: string | undefined;
  from?: string | undefined;
  /** Included. */
  to?: string | undefined;
  /** The number that the page begins below. */
  before?: number | undefined;
  filter?: string | undefined;
}

/** What cannot be meant is undefined, not left out: the router would keep it as it came. */
export function auditSearch({
  person,
  cluster,
  operation,
  from,
  to,
  before,
  filter,
}: Record<string, unknown>): AuditSearch {
  return {
    person: textOf(person),
    cluster: textOf(cluster),
    operation: textOf(operation)?.slice(0, 100),
    from: dayOf(from),
    to: dayOf(to),
    before: numberOf(before),
    filter: textOf(filter),
  };
}

/** The number of an entry that a page begins below. */
export function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined;
}

export function dayOf(value: unknown): string | undefined {
  const isDay = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value);
  return isDay && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

export const auditPageSize = 100;

/** What the operation is asked for. */
export function auditQuery({ filter: _inPage, person, cluster, operation, before, ...days }: AuditSearch) {
  return {
    order: 'newest' as const,
    limit: auditPageSize,
    ...(person !== undefined && { person }),
    ...(cluster !== undefined && { cluster }),
    ...(operation !== undefined && { operation }),
    ...timesOf(days),
    ...(before !== undefined && { after: before }),
  };
}

/** A page of the trail, newest first. */
export const readAudit = (search: AuditSearch) => {
  const query = auditQuery(search);
  return queryOptions({
    queryKey: ['operator', 'audit', query],
    meta: { topics: ['installation'] },
    queryFn: async () => bodyOf(await business.GET('/operator/audit', { params: { query } })).entries,
  });
};

/** The days of an address as the moments that operations take: the last day is included. */
export function timesOf({ from, to }: Pick<AuditSearch, 'from' | 'to'>): { from?: string; to?: string } {
  return {
    ...(from !== undefined && { from: beginOf(from, 0) }),
    ...(to !== undefined && { to: beginOf(to, 1) }),
  };
}

/** When a day begins here, or the one so many days later. */
function beginOf(day: string, later: number): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + later).toISOString();
}

export const readOpenSessions = () =>
  queryOptions({
    queryKey: ['operator', 'sessions'],
    meta: { topics: ['ssh-sessions'] },
    queryFn: async () => bodyOf(await business.GET('/operator/sessions')).sessions,
  });

/** Lists that go back in time: the audit trail, and SSH sessions that have ended. Their filters are in the address. */

/** Days are those of the reader. */
export interface TrailSearch {
  from?: string | undefined;
  /** Included. */
  to?: string | undefined;
  before?: number | undefined;
  /** An address or an ID. */
  person?: string | undefined;
  cluster?: string | undefined;
  /** With `*` at the end: all that begin so. */
  operation?: string | undefined;
  result?: 'done' | 'refused' | undefined;
  /** Where from. */
  address?: string | undefined;
  key?: string | undefined;
}

/** What cannot be meant is undefined, not left out: the router would keep it as it came. */
function trailSearch(...names: ('person' | 'cluster' | 'operation' | 'address' | 'key')[]) {
  return (search: Record<string, unknown>): TrailSearch => ({
    ...Object.fromEntries(names.map((name) => [name, textOf(search[name])])),
    from: dayOf(search['from']),
    to: dayOf(search['to']),
    before:
      Number.isSafeInteger(search['before']) && Number(search['before']) > 0
        ? Number(search['before'])
        : undefined,
  });
}

const ofEntries = trailSearch('person', 'cluster', 'operation');
export function auditSearch(search: Record<string, unknown>): TrailSearch {
  const { result } = search;
  return { ...ofEntries(search), result: result === 'done' || result === 'refused' ? result : undefined };
}
export const sessionSearch = trailSearch('person', 'cluster', 'address', 'key');
export const ownSessionSearch = trailSearch();

function dayOf(value: unknown): string | undefined {
  const isDay = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value);
  return isDay && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

export type TrailQuery = { limit: number; after?: number; result?: 'done' | 'refused' } & {
  [Name in Exclude<keyof TrailSearch, 'before' | 'result'>]?: string;
};

export function trailQuery({ from, to, before, ...about }: TrailSearch, limit: number): TrailQuery {
  const given = {
    ...about,
    from: from && beginOf(from, 0),
    to: to && beginOf(to, 1),
    after: before,
  };
  return { limit, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) };
}

/** When a day begins here, or the one so many days later. */
function beginOf(day: string, later: number): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + later).toISOString();
}

const longest = 200;

/** A search parameter as text; undefined for what is none. The router reads what looks like a number as one. */
export function textOf(value: unknown): string | undefined {
  const isText = typeof value === 'string' || typeof value === 'number';
  return isText && value !== '' ? String(value).slice(0, longest) : undefined;
}

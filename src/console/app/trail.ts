/** Filters of the audit trail and of ended SSH sessions, as search parameters of their pages. */

/** Days are in the reader's time zone. */
export interface TrailSearch {
  from?: string | undefined;
  /** The last day, included. */
  to?: string | undefined;
  before?: number | undefined;
  /** An email address or an ID. */
  person?: string | undefined;
  cluster?: string | undefined;
  /** An operation, or a prefix with `*` at its end. */
  operation?: string | undefined;
  result?: 'done' | 'refused' | undefined;
  /** The source address of a session. */
  address?: string | undefined;
  key?: string | undefined;
}

/** Invalid values are set to undefined, not left out: the router would keep them unchecked. */
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

/** The time at which a day begins here, or the day `later` days after it. */
function beginOf(day: string, later: number): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + later).toISOString();
}

const longest = 200;

/** A search parameter as text; undefined if it is not one. The router parses digits to a number, which counts as text. */
export function textOf(value: unknown): string | undefined {
  const isText = typeof value === 'string' || typeof value === 'number';
  return isText && value !== '' ? String(value).slice(0, longest) : undefined;
}

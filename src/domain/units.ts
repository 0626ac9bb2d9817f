/** Durations and sizes as people write them, a number and its unit, and times as they send them. */

const unitsMs: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

export function durationMs(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const unitMs = unitsMs[unit];
  return unitMs === undefined ? undefined : Number(count) * unitMs;
}

const sizeUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `100 GiB`, `1.5 TiB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(sizeUnits.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${Number((bytes / 1024 ** power).toFixed(1))} ${sizeUnits[power]}`;
}

/** Times as people send them: RFC 3339, and moments that there are. */

const pattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
/** The length of a time in UTC within the years 0000 to 9999; one outside of them has a sign and two digits more. */
const utcLength = '2030-01-01T00:00:00.000Z'.length;

/**
 * Whether a text is a whole RFC 3339 time that the calendar has, in UTC at most of the year 9999. Leap seconds are
 * none that we could keep.
 */
export function isTime(text: string): boolean {
  const [, clock] = pattern.exec(text)?.map((part) => part.toUpperCase()) ?? [];
  // `Date` takes 30 February for 2 March, so that what it makes of the clock must read as it did.
  if (clock === undefined || iso(`${clock}Z`)?.startsWith(clock) !== true) return false;
  return iso(text)?.length === utcLength;
}

function iso(text: string): string | undefined {
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

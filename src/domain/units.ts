/** Parses and formats durations and sizes (a number and its unit), and checks RFC 3339 times in requests. */

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

/** RFC 3339 times in requests; dates that the calendar does not have are refused. */

const pattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
/** The length of a time in UTC within the years 0000 to 9999; one outside of them has a sign and two digits more. */
const utcLength = '2030-01-01T00:00:00.000Z'.length;

/**
 * True for a complete RFC 3339 time with a real date, no later in UTC than the year 9999. Leap seconds are refused,
 * since they cannot be stored.
 */
export function isTime(text: string): boolean {
  const [, clock] = pattern.exec(text)?.map((part) => part.toUpperCase()) ?? [];
  // `Date` reads 30 February as 2 March, so the parsed time must format back to the same text.
  if (clock === undefined || iso(`${clock}Z`)?.startsWith(clock) !== true) return false;
  return iso(text)?.length === utcLength;
}

function iso(text: string): string | undefined {
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

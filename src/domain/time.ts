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

/** Times as the tables hold them. */

/** RFC 3339 in UTC with milliseconds, from milliseconds since 1970. */
export function toTime(now: number): string {
  return new Date(now).toISOString();
}

/** Milliseconds since 1970, from a stored time. */
export function fromTime(time: string): number {
  return Date.parse(time);
}

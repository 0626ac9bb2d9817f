/** Times on the command line. */
import { durationMs } from '../domain/units.ts';
import { usage } from './exit.ts';

/** RFC 3339 in UTC from a time or a date (its beginning, in UTC), as given with `flag`. */
export function parseTime(flag: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : undefined;
  if (!time || Number.isNaN(time.getTime()))
    throw usage(`'${text}' is not a time for ${flag}; write 2030-01-31 or 2030-01-31T09:00:00Z.`);
  return time.toISOString();
}

/** RFC 3339 in UTC from a time, a date, or a span from now such as `2h`. */
export function parseEnd(flag: string, text: string | undefined): string | undefined {
  const ms = durationMs(text ?? '');
  return ms === undefined ? parseTime(flag, text) : new Date(Date.now() + ms).toISOString();
}

/** RFC 3339 in UTC from `--from`, or from `--since`: that long ago. */
export function parseStart(from: string | undefined, since: string | undefined): string | undefined {
  if (since === undefined) return parseTime('--from', from);
  return new Date(Date.now() - parseSpan('--since', since)).toISOString();
}

/** Milliseconds of a time span: `30m`, `2h`, `7d`. */
export function parseSpan(flag: string, text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw usage(`'${text}' is not a time span for ${flag}; write 30m, 2h or 7d.`);
  return ms;
}

/** Parses the values that people name on the command line: things by their names, times, time spans. */
import { visibleLine } from '../domain/text.ts';
import { durationMs } from '../domain/units.ts';
import { CliError, failure, usage } from './exit.ts';

const shownAtMost = 10;
/** Minimum length of an abbreviated ID: a shorter one could be a mistyped name. */
const prefixLength = 8;

/**
 * Returns the one item with this name, this ID, or an ID that begins so. Throws a message that lists the items; `one` and
 * `many` are the nouns that it uses.
 */
export function pick<T>(
  [one, many]: readonly [one: string, many: string],
  items: readonly T[],
  wanted: string,
  labelsOf: (item: T) => readonly [name: string, id: string, ...others: string[]],
): T {
  const nameOf = (item: T) => labelsOf(item)[0];
  const exact = items.filter((item) => labelsOf(item).includes(wanted));
  const byPrefix =
    wanted.length < prefixLength ? [] : items.filter((item) => labelsOf(item)[1].startsWith(wanted));
  const found = exact.length > 0 ? exact : byPrefix;
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (found.length > 1) {
    const each = found.map(labelsOf).map(([name, id]) => `${name} (${id})`);
    throw failure(visibleLine(`'${wanted}' fits several ${many}: ${enumerate(each)}.`));
  }
  const names = [...new Set(items.map(nameOf))].sort();
  const rest = names.length === 0 ? `there are no ${many}` : `there are: ${enumerate(names)}`;
  throw new CliError('notFound', visibleLine(`There is no ${one} '${wanted}'; ${rest}.`));
}

function enumerate(names: readonly string[]): string {
  const more = names.length - shownAtMost;
  const shown = names.slice(0, shownAtMost).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** Converts a time, or a date (its start in UTC), to RFC 3339 in UTC. Errors name `flag`. */
export function parseTime(flag: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : undefined;
  if (!time || Number.isNaN(time.getTime()))
    throw usage(`'${text}' is not a time for ${flag}; write 2030-01-31 or 2030-01-31T09:00:00Z.`);
  return time.toISOString();
}

/** Converts a time, a date, or a span from now such as `2h`, to RFC 3339 in UTC. */
export function parseEnd(flag: string, text: string | undefined): string | undefined {
  const ms = durationMs(text ?? '');
  return ms === undefined ? parseTime(flag, text) : new Date(Date.now() + ms).toISOString();
}

/** RFC 3339 in UTC from `--from`, or from `--since` (a span before now). */
export function parseStart(from: string | undefined, since: string | undefined): string | undefined {
  if (since === undefined) return parseTime('--from', from);
  return new Date(Date.now() - parseSpan('--since', since)).toISOString();
}

export function parseSpan(flag: string, text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw usage(`'${text}' is not a time span for ${flag}; write 30m, 2h or 7d.`);
  return ms;
}

/** From what a person calls a thing to the thing. */
import { visibleLine } from '../domain/text.ts';
import { CliError, failure } from './exit.ts';

const shownAtMost = 10;
/** The beginning of an ID has to be this long, or a mistyped name could be one. */
const prefixLength = 8;

/**
 * The one item with this name, this ID, or an ID that begins so. Throws a sentence that lists what there is; `one` and `many`
 * are what it calls them.
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

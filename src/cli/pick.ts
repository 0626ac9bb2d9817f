/** From what a person calls a thing to the thing. */
import { visibleLine } from '../domain/visible-text.ts';
import { CliError, failure } from './exit.ts';

export interface PickKind<T> {
  one: string;
  many: string;
  nameOf(item: T): string;
  idOf(item: T): string;
}

const shownAtMost = 10;
/** The beginning of an ID has to be this long, or a mistyped name could be one. */
const prefixLength = 8;

/** The one item with this name, this ID, or an ID that begins so. Throws a sentence that lists what there is. */
export function pick<T>(kind: PickKind<T>, items: readonly T[], wanted: string): T {
  const { nameOf, idOf } = kind;
  const exact = items.filter((item) => nameOf(item) === wanted || idOf(item) === wanted);
  const byPrefix = wanted.length < prefixLength ? [] : items.filter((item) => idOf(item).startsWith(wanted));
  const found = exact.length > 0 ? exact : byPrefix;
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (found.length > 1) {
    const each = found.map((item) => `${nameOf(item)} (${idOf(item)})`);
    throw failure(visibleLine(`'${wanted}' fits several ${kind.many}: ${enumerate(each)}.`));
  }
  const names = [...new Set(items.map(nameOf))].sort();
  const rest = names.length === 0 ? `there are no ${kind.many}` : `there are: ${enumerate(names)}`;
  throw new CliError('notFound', visibleLine(`There is no ${kind.one} '${wanted}'; ${rest}.`));
}

function enumerate(names: readonly string[]): string {
  const more = names.length - shownAtMost;
  const shown = names.slice(0, shownAtMost).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

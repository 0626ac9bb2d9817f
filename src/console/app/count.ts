/** A number with its noun, such as `1 key` and `3 keys`; `more` where the plural is another word. */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${number} ${number === 1 ? one : more}`;
}

/** The first of a list, and how many more there are; `all` where the list itself is only the first of them. */
export function firstOf(items: readonly string[], most: number, all = items.length): string {
  const more = all - Math.min(items.length, most);
  return `${items.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** A number with its noun, such as `1 key` and `3 keys`; `more` where the plural is another word. */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${number} ${number === 1 ? one : more}`;
}

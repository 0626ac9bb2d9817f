/**
 * Text as both databases store it: in UTF-8, which has no half of a surrogate pair, and without NUL (U+0000), which PostgreSQL
 * does not take and where a text ends in C. Requests with either are refused; in what comes from other programs (a cluster, an SSH
 * client, an issuer), in what is searched for, and before anything is hashed or signed, U+FFFD takes their place.
 */

const nul = '\0';

export function hasNul(text: string): boolean {
  return text.includes(nul);
}

/** The text as it is read back once it was stored. */
export function storedText(text: string): string {
  return (hasNul(text) ? text.replaceAll(nul, '\ufffd') : text).toWellFormed();
}

const isOther = (value: unknown) => typeof value === 'string' && (hasNul(value) || !value.isWellFormed());

/** The same of each text among them; the list itself where that changes none. */
export function storedTexts(values: readonly unknown[]): readonly unknown[] {
  if (!values.some(isOther)) return values;
  return values.map((value) => (typeof value === 'string' ? storedText(value) : value));
}

/** The same of an object's own texts, and of lists of texts in it; the object itself where that changes none. */
export function storedTextsIn<T extends object>(given: T): T {
  const values = Object.values(given);
  if (!values.some((value) => isOther(value) || (Array.isArray(value) && value.some(isOther)))) return given;
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    typeof value === 'string' ? storedText(value) : Array.isArray(value) ? storedTexts(value) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** The first `most` characters (code points) of a text: never one half of a surrogate pair, which cannot be stored. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return [...text.slice(0, 2 * most)].slice(0, most).join('');
}

/** The text in at most `most` characters, the last of them `…` where it was longer. */
export function shortText(text: string, most: number): string {
  return cutText(text, most) === text ? text : `${cutText(text, most - 1)}…`;
}

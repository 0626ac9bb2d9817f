/**
 * NUL (U+0000), which no text of the service has: PostgreSQL stores none, and programs in C end a text there. Who sends one is
 * told; in what comes from elsewhere (a cluster, an SSH client, an issuer) and in what is looked for, U+FFFD takes its place.
 */

const nul = '\0';

export function hasNul(text: string): boolean {
  return text.includes(nul);
}

export function withoutNul(text: string): string {
  return hasNul(text) ? text.replaceAll(nul, '\ufffd') : text;
}

/** The same of each text among them; the list itself where none has any. */
export function withoutNuls(values: readonly unknown[]): readonly unknown[] {
  for (const value of values)
    if (typeof value === 'string' && hasNul(value))
      return values.map((one) => (typeof one === 'string' ? withoutNul(one) : one));
  return values;
}

/** The same of an object's own texts, and of lists of texts in it. */
export function withoutNulIn<T extends object>(given: T): T {
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    typeof value === 'string' ? withoutNul(value) : Array.isArray(value) ? withoutNuls(value) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

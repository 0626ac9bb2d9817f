const longest = 200;

/** A search parameter as text; undefined for what is none. The router reads what looks like a number as one. */
export function textOf(value: unknown): string | undefined {
  const isText = typeof value === 'string' || typeof value === 'number';
  return isText && value !== '' ? String(value).slice(0, longest) : undefined;
}

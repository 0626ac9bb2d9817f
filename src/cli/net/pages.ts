/** Lists that an API gives a page at a time. */

/** All the items; `read` asks for the page after a token, `parts` says what is in it and the next token. */
export async function readPages<P, T>(
  read: (after: string | undefined) => Promise<P>,
  parts: (page: P) => { items: readonly T[]; next: string | undefined },
): Promise<T[]> {
  const all: T[] = [];
  let after: string | undefined;
  do {
    const { items, next } = parts(await read(after));
    all.push(...items);
    after = next;
  } while (after !== undefined);
  return all;
}

/** A bound on a wait, with a message that says what it waited for. */

export async function within<T>(limitMs: number, what: string, waiting: Promise<T>): Promise<T> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `waited ${limitMs / 1000} s for ${what}`;
    limit = setTimeout(() => reject(new Error(message)), limitMs);
  });
  return Promise.race([waiting, late]).finally(() => clearTimeout(limit));
}

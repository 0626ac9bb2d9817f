/** A bound on a wait, with a message that says what it waited for. */
import { limit } from './limit.ts';

export async function within<T>(what: string, waiting: Promise<T>): Promise<T> {
  const limitMs = limit(60_000);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `waited ${limitMs / 1000} s for ${what}`;
    timer = setTimeout(() => reject(new Error(message)), limitMs);
  });
  return Promise.race([waiting, late]).finally(() => clearTimeout(timer));
}

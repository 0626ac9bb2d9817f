/**
 * A cache of what is made of the database and of nothing else; any commit empties it. It is never for a decision about
 * who may have it, which also depends on the time and on who asks.
 */
import { engine } from './engine.ts';
import type { Store } from './index.ts';

interface Cache {
  version: number;
  entries: Map<string, Promise<object>>;
}

const cacheOf = new WeakMap<Store, Cache>();
/** Some lists are long. */
const most = 32;

/**
 * What `make` makes for a key, frozen; the same object again for whoever asks before the next commit, by this process or
 * by another one.
 */
export async function cached<T extends object>(
  store: Store,
  key: string,
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  // Read before anything that is made, so that what is committed meanwhile makes it another one.
  const version = await engine.dataVersion(store.read);
  const earlier = cacheOf.get(store);
  const cache = earlier?.version === version ? earlier : { version, entries: new Map() };
  cacheOf.set(store, cache);
  const known = cache.entries.get(key) as Promise<Readonly<T>> | undefined;
  if (known) return known;
  const [oldest] = cache.entries.keys();
  if (oldest !== undefined && cache.entries.size >= most) cache.entries.delete(oldest);
  const making = make().then((made) => Object.freeze(made));
  cache.entries.set(key, making);
  making.catch(() => cache.entries.delete(key));
  return making;
}

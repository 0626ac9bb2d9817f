/**
 * A cache of what is made of the database and of nothing else; any commit empties it, but for what has a version of its
 * own. It is never for a decision about who may have it, which also depends on the time and on who asks.
 */
import { dataVersion } from './engine.ts';
import type { Store } from './index.ts';
import { createKept } from './kept.ts';

interface Cache {
  version: number;
  entries: Map<string, Promise<object>>;
}

interface Versioned {
  version: string;
  making: Promise<object>;
}

const cachesOf = createKept<Cache>();
const versionedOf = createKept<Versioned>();
/** The only one of the map. */
const only = '';
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
  const caches = cachesOf(store);
  const version = await dataVersion(store.read);
  const earlier = caches.get(only);
  const cache = earlier?.version === version ? earlier : { version, entries: new Map() };
  caches.set(only, cache);
  const known = cache.entries.get(key) as Promise<Readonly<T>> | undefined;
  if (known) return known;
  dropOldest(cache.entries);
  const making = make().then((made) => Object.freeze(made));
  cache.entries.set(key, making);
  making.catch(() => cache.entries.delete(key));
  return making;
}

/** The same for what costs much to make: frozen, and the same object again while the version is the same. */
export async function cachedAs<T extends object>(
  store: Store,
  { key, version }: { key: string; version: string },
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  const entries = versionedOf(store);
  const known = entries.get(key);
  if (known?.version === version) return known.making as Promise<Readonly<T>>;
  entries.delete(key);
  dropOldest(entries);
  const entry = { version, making: make().then((made) => Object.freeze(made)) };
  entries.set(key, entry);
  entry.making.catch(() => {
    if (entries.get(key) === entry) entries.delete(key);
  });
  return entry.making;
}

function dropOldest(entries: Map<string, unknown>): void {
  const [oldest] = entries.keys();
  if (oldest !== undefined && entries.size >= most) entries.delete(oldest);
}

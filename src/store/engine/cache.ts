/**
 * A cache of values made from the database alone. Never for decisions about access, which also depend on the time and on the caller.
 */
import { hears } from './changes.ts';
import { dataVersion } from './engine.ts';
import type { Store } from './index.ts';

interface CacheEntry {
  version: string;
  making: Promise<object>;
}

/** The caches, by the `server` that all stores of one opening of the database share. */
const caches = new WeakMap<Store['server'], Map<string, Map<string, CacheEntry>>>();
/** Values kept of each kind, which is a key up to its first slash: most are lists, and some are long. */
const most = 32;
const mostOf: Record<string, number> = { me: 1_000 };

/**
 * The result of `make` for a key such as `clusters/…`, frozen; the same object is returned until the next commit, by this process or
 * another one.
 */
export async function cached<T extends object>(
  store: Store,
  key: string,
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  // Read before `make` runs, so that a commit meanwhile leads to another version.
  const version = await dataVersion(store.read);
  return cachedAs(store, { key, version: `${version}` }, make);
}

/** The same for a value with a version of its own: frozen, and the same object again while that is the same. */
export async function cachedAs<T extends object>(
  store: Store,
  { key, version }: { key: string; version: string },
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  const [kind = ''] = key.split('/', 1);
  const entries = entriesOf(store, kind);
  const known = entries.get(key);
  if (known?.version === version) return known.making as Promise<Readonly<T>>;
  entries.delete(key);
  const [oldest] = entries.keys();
  if (oldest !== undefined && entries.size >= (mostOf[kind] ?? most)) entries.delete(oldest);
  const entry = { version, making: make().then((made) => Object.freeze(made)) };
  entries.set(key, entry);
  entry.making.catch(() => {
    if (entries.get(key) === entry) entries.delete(key);
  });
  return entry.making;
}

/** The cache of a store. After lost commits, a version comes again with another meaning, so a change of everything empties it. */
function entriesOf({ server, onChange }: Store, kind: string): Map<string, CacheEntry> {
  let kinds = caches.get(server);
  if (!kinds) {
    const made = new Map<string, Map<string, CacheEntry>>();
    caches.set(server, made);
    onChange(hears.caches, () => made.clear());
    kinds = made;
  }
  const entries = kinds.get(kind) ?? new Map<string, CacheEntry>();
  kinds.set(kind, entries);
  return entries;
}

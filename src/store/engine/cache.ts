/**
 * A cache of values made from the database alone. Never for decisions about access, which also depend on the time and on the caller.
 */
import { hears } from './changes.ts';
import { dataVersion } from './engine.ts';
import type { Store } from './index.ts';

interface Entry {
  version: string;
  making: Promise<object>;
}

/** By what all stores of one opening of the database share. */
const caches = new WeakMap<Store['server'], Map<string, Entry>>();
/** Some lists are long. */
const most = 32;

/**
 * The result of `make` for a key, frozen; the same object is returned until the next commit, by this process or another one.
 */
export async function cached<T extends object>(
  store: Store,
  key: string,
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  // Read before anything that is made, so that what is committed meanwhile makes it another one.
  const version = await dataVersion(store.read);
  return cachedAs(store, { key, version: `${version}` }, make);
}

/** The same for what has a version of its own: frozen, and the same object again while that is the same. */
export async function cachedAs<T extends object>(
  store: Store,
  { key, version }: { key: string; version: string },
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  const entries = entriesOf(store);
  const known = entries.get(key);
  if (known?.version === version) return known.making as Promise<Readonly<T>>;
  entries.delete(key);
  const [oldest] = entries.keys();
  if (oldest !== undefined && entries.size >= most) entries.delete(oldest);
  const entry = { version, making: make().then((made) => Object.freeze(made)) };
  entries.set(key, entry);
  entry.making.catch(() => {
    if (entries.get(key) === entry) entries.delete(key);
  });
  return entry.making;
}

/** The cache of a store. Where commits were lost, a version comes again with another meaning, so a change of everything empties it. */
function entriesOf({ server, onChange }: Store): Map<string, Entry> {
  const known = caches.get(server);
  if (known) return known;
  const entries = new Map<string, Entry>();
  caches.set(server, entries);
  onChange(hears.caches, () => entries.clear());
  return entries;
}

/**
 * What is made of the database and of nothing else, kept until anything is committed. It is never for a decision about
 * who may have it, which also depends on the time and on who asks.
 */
import { dataVersion } from './dialects/sqlite.ts';
import type { Store } from './index.ts';

interface Kept {
  version: number;
  made: Map<string, Promise<object>>;
}

const keptOf = new WeakMap<Store, Kept>();
/** Some lists are long. */
const most = 32;

/**
 * What `make` makes for a key, frozen; the same object again for whoever asks before the next commit, by this process or
 * by another one.
 */
export async function whileUnchanged<T extends object>(
  store: Store,
  key: string,
  make: () => Promise<T>,
): Promise<Readonly<T>> {
  // Read before anything that is made, so that what is committed meanwhile makes it another one.
  const version = await dataVersion(store.read);
  const earlier = keptOf.get(store);
  const kept = earlier?.version === version ? earlier : { version, made: new Map() };
  keptOf.set(store, kept);
  const known = kept.made.get(key) as Promise<Readonly<T>> | undefined;
  if (known) return known;
  const [oldest] = kept.made.keys();
  if (oldest !== undefined && kept.made.size >= most) kept.made.delete(oldest);
  const making = make().then((made) => Object.freeze(made));
  kept.made.set(key, making);
  making.catch(() => kept.made.delete(key));
  return making;
}

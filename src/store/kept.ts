/** What is kept in memory of a database by the versions that it says, which only rise. */
import type { Store } from './index.ts';

/**
 * What it returns gives the map of a store: whoever works with it takes it once, at the beginning. Where commits were lost, a version
 * comes again and means something else. So with a change of everything there is another, empty map, and what is found by who is at
 * work goes into the one of before.
 */
export function createKept<T>(): (store: Pick<Store, 'server' | 'onChange'>) => Map<string, T> {
  // By what all stores of one opening of the database share.
  const maps = new WeakMap<Store['server'], Map<string, T>>();
  const watched = new WeakSet<Store['server']>();
  return ({ server, onChange }) => {
    const known = maps.get(server);
    if (known) return known;
    const map = new Map<string, T>();
    maps.set(server, map);
    if (!server.isAlone && !watched.has(server)) {
      watched.add(server);
      onChange((changes) => {
        if (changes.some((change) => 'everything' in change)) maps.delete(server);
      });
    }
    return map;
  };
}

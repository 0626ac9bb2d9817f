import { useSyncExternalStore } from 'react';

export function createSource<Value>(value: Value) {
  const watchers = new Set<() => void>();
  const watch = (watcher: () => void) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  };
  return {
    get: () => value,
    set(next: Value) {
      value = next;
      for (const watcher of watchers) watcher();
    },
    use: <Part>(select: (value: Value) => Part) => useSyncExternalStore(watch, () => select(value)),
  };
}

/** One sentence on what has just been done, where the page itself does not say it. It stays until it is closed, or the next write. */
export const notice = createSource<string | undefined>(undefined);

/** The announcement of the last save, shown for some seconds; `count` differs between two with the same text. */
export const announcement = createSource<{ text: string; count: number } | undefined>(undefined);
let announced = 0;

export function announce(text: string): void {
  announced += 1;
  announcement.set({ text, count: announced });
}

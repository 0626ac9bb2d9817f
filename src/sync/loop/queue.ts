/** Runs tasks, at most `width` at a time, in the order in which they came. */
export type Queue = <T>(task: () => Promise<T>) => Promise<T>;

/**
 * Bounds work on the database, not the wait for clusters: hundreds of half-done passes would hold memory, and none would
 * finish sooner.
 */
export function createQueue(width: number): Queue {
  const waiting: (() => void)[] = [];
  let free = width;
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

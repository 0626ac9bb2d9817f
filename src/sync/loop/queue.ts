/** Runs tasks, at most `width` at a time, in the order in which they came. */
export type Queue = <T>(task: () => Promise<T>) => Promise<T>;

/**
 * It is for work on the database, not for waiting for clusters: hundreds of passes half-way through would hold memory, and
 * none would be done sooner.
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

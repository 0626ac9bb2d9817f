/** What is tried every so often, and at once a second time where the first attempt failed. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Try {
  at: number;
  /** How many attempts it took; undefined: both failed. */
  attempts: 1 | 2 | undefined;
  ms: number;
  /** Why attempts failed. */
  said: string;
}

export interface Tries {
  readonly all: readonly Try[];
  /** Resolves with the time of the next that succeeds. */
  next(limitMs: number): Promise<number>;
  stop(): Promise<void>;
}

/** `begin` gives what attempts the next one, which began at a time, and resolves to why that failed. */
export function startTries(everyMs: number, begin: (at: number) => () => Promise<string | undefined>): Tries {
  const all: Try[] = [];
  const succeeded: number[] = [];
  const under = new Set<Promise<void>>();

  async function tryOnce(): Promise<void> {
    const at = performance.now();
    const attempt = begin(at);
    const first = await attempt();
    const second = first === undefined ? undefined : await attempt();
    const attempts = first === undefined ? 1 : second === undefined ? 2 : undefined;
    if (attempts) succeeded.push(performance.now());
    all.push({ at, attempts, ms: performance.now() - at, said: [first, second].filter(Boolean).join('; ') });
  }

  const starting = setInterval(() => {
    // Each by itself: one that hangs keeps no other waiting.
    const trying = tryOnce().finally(() => under.delete(trying));
    under.add(trying);
  }, everyMs);

  return {
    all,
    async next(limitMs) {
      const before = succeeded.length;
      const end = performance.now() + limitMs;
      while (succeeded.length === before) {
        if (performance.now() > end) return Number.POSITIVE_INFINITY;
        await sleep(20);
      }
      return succeeded.at(-1) ?? 0;
    },
    async stop() {
      clearInterval(starting);
      await Promise.all(under);
    },
  };
}

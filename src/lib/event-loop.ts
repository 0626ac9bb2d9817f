/**
 * Yields to the event loop, which requests share, where it was measured to matter: before each query, since a
 * transaction of thousands of them never waits, and in the JSON of lists of thousands (`api/http/reply.ts`).
 */

/** Longer than a request's work takes, and too short to be noticed. */
const longestMs = 4;

let since: number | undefined;

/** A promise to await when this iteration of the event loop has taken too long; undefined when it has not. */
export function yieldToEventLoop(): Promise<void> | undefined {
  if (since === undefined) {
    since = performance.now();
    setImmediate(endIteration);
    return undefined;
  }
  return performance.now() - since < longestMs ? undefined : nextIteration();
}

/** Runs a generator's work, and yields to the event loop between its values when the iteration has taken too long. */
export async function runInParts<T>(parts: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
    const way = yieldToEventLoop();
    if (way) await way;
  }
}

/** Queue of waiting tasks, first come first. For each a `resumeFirst` is scheduled. */
const waiting: (() => void)[] = [];

function nextIteration(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    setImmediate(resumeFirst);
  });
}

/**
 * Resumes the first waiting task, or waits for the next iteration where this one has taken too long. Without the
 * order, a task that never pauses would be the first in each iteration, and use it up.
 */
function resumeFirst(): void {
  if (since === undefined) {
    since = performance.now();
    setImmediate(endIteration);
  } else if (performance.now() - since >= longestMs) {
    setImmediate(resumeFirst);
    return;
  }
  waiting.shift()?.();
}

function endIteration(): void {
  since = undefined;
}

/**
 * Yielding to the event loop, which requests share with everything else, where it was measured to matter: before each query, since a
 * transaction of thousands of them waits for nothing in between, and in the JSON of lists of thousands (`api/http/reply.ts`).
 */

/** Longer than a request's work takes, and shorter than anyone notices. */
const longestMs = 4;

let since: number | undefined;

/** A promise to wait for when this iteration of the event loop has taken too long; undefined when it has not. */
export function yieldToEventLoop(): Promise<void> | undefined {
  if (since === undefined) {
    since = performance.now();
    setImmediate(endIteration);
    return undefined;
  }
  return performance.now() - since < longestMs ? undefined : nextIteration();
}

/** Runs work that can be interrupted at each value of a generator, and yields there when it has taken too long. */
export async function runInParts<T>(parts: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
    const way = yieldToEventLoop();
    if (way) await way;
  }
}

/** Those who wait, in the order in which they came. For each there is a `resumeFirst` to come. */
const waiting: (() => void)[] = [];

function nextIteration(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    setImmediate(resumeFirst);
  });
}

/**
 * Lets the first one go on, or waits for the next iteration where this one has taken too long already. Without the order,
 * one that works on and on would be the first in each iteration, and use it up.
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

/**
 * Yielding to the event loop, which people's keystrokes share with everything else. Whatever can go on for long without
 * input or output, such as a row of queries, yields in between.
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

async function nextIteration(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (since !== undefined && performance.now() - since >= longestMs);
  if (since !== undefined) return;
  since = performance.now();
  setImmediate(endIteration);
}

function endIteration(): void {
  since = undefined;
}

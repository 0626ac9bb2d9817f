/**
 * Turns of the event loop, which people's keystrokes share with everything else. Whatever can go on for long without
 * input or output, such as a row of queries, gives way in between.
 */

/** Longer than a request's work takes, and shorter than anyone notices. */
const longestMs = 4;

let since: number | undefined;

/** Something to wait for when those who ask have kept this turn for too long; undefined when not. */
export function giveWay(): Promise<void> | undefined {
  if (since === undefined) {
    since = performance.now();
    setImmediate(endTurn);
    return undefined;
  }
  return performance.now() - since < longestMs ? undefined : nextTurn();
}

async function nextTurn(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (since !== undefined && performance.now() - since >= longestMs);
  if (since !== undefined) return;
  since = performance.now();
  setImmediate(endTurn);
}

function endTurn(): void {
  since = undefined;
}

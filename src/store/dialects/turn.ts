/** Turns of the event loop, as far as queries take them up. It is shared with people's keystrokes. */

/** Longer than a request's queries take, and shorter than anyone notices. */
const longestMs = 4;

let since: number | undefined;

/** Something to wait for when queries have kept the event loop for too long in this turn; undefined when not. */
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

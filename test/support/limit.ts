/**
 * How long tests wait for something. What waits longer than this has failed; how fast something was is for the bench, never for a
 * test. So limits are long, and longer on a slow machine.
 */

/** What this process took to start on a quiet machine of two cores, in ms; a debugger or a busy machine makes it more. */
const usualStartMs = 60;
const most = 4;
const slowness = Math.min(most, Math.max(1, performance.now() / usualStartMs));

/** A limit in ms on a quiet machine, as much longer as this process was slow to start. */
export function limit(milliseconds: number): number {
  return Math.round(milliseconds * slowness);
}

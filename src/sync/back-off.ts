const firstRetryMs = 1_000;

/**
 * Milliseconds until the next attempt after so many failures in a row: doubling up to `longestMs`, with jitter (`random`
 * is 0 to 1) so that many clusters do not come back at once.
 */
export function retryDelay(failures: number, random: number, longestMs: number): number {
  const whole = Math.min(longestMs, firstRetryMs * 2 ** (failures - 1));
  return Math.round(whole * (0.5 + random / 2));
}

/** Percentiles of many readings. */

/** What the given share of the readings is at or below, 1 for the worst; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** GPU time of a cluster's people by day (UTC), from Slurm's accounting or, on clusters without it, from the jobs in reports. */
import type { GpuDay, RunningJob } from '../access/manifest.ts';

/** The days for which GPU time is stored. */
export const mostGpuDays = 90;

const dayMs = 86_400_000;

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** The day's first and last moment: midnight to midnight, in ms since 1970. */
export function boundsOf(day: string): { from: number; to: number } {
  const from = Date.parse(`${day}T00:00:00Z`);
  return { from, to: from + dayMs };
}

/** The last `count` days, today first. */
export function lastDays(now: number, count: number): string[] {
  return Array.from({ length: count }, (_, ago) => dayOf(now - ago * dayMs));
}

/** GPU seconds that jobs held between two times, in ms since 1970, less than a day apart. */
export function heldBetween(jobs: readonly RunningJob[], from: number, to: number): GpuDay[] {
  return [...new Set([dayOf(from), dayOf(to)])].map((day) => {
    const bounds = boundsOf(day);
    const seconds = new Map<string, number>();
    for (const { user, gpus = 0, startedAt } of jobs) {
      const began = Math.max(from, bounds.from, startedAt === undefined ? 0 : Date.parse(startedAt));
      const held = gpus * Math.max(0, Math.round((Math.min(to, bounds.to) - began) / 1_000));
      if (held > 0) seconds.set(user, (seconds.get(user) ?? 0) + held);
    }
    return { day, seconds: Object.fromEntries(seconds) };
  });
}

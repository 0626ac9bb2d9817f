/** GPU time of a cluster's people by day (UTC), from Slurm's accounting or, where there is none, from the jobs that reports named. */
import type { GpuDay, RunningJob } from '../access/manifest.ts';

/** How far back it is known. */
export const mostGpuDays = 90;

const dayMs = 86_400_000;

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** From midnight to midnight, in ms since 1970. */
export function boundsOf(day: string): { from: number; to: number } {
  const from = Date.parse(`${day}T00:00:00Z`);
  return { from, to: from + dayMs };
}

/** Today and the days before it, as many as are asked for, the last first. */
export function lastDays(now: number, count: number): string[] {
  return Array.from({ length: count }, (_, ago) => dayOf(now - ago * dayMs));
}

/** What jobs held between two times, in ms since 1970, less than a day apart. */
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

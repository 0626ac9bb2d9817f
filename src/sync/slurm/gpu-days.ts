/** Which days of GPU time a cluster's accounting is asked for: one in an observation, so that a slow one holds nothing up. */
import type { GpuDay } from '../../domain/access/manifest.ts';
import { boundsOf, lastDays, mostGpuDays } from '../../domain/clusters/gpu-hours.ts';
import type { Facts } from './facts.ts';
import type { Row } from './script.ts';

/** What is not over is asked for so often. */
const everyMs = 600_000;
/** A day stands when it was read so long after its end. */
const settlesAfterMs = 3_600_000;

export class GpuDays {
  readonly #asked = new Map<string, number>();
  readonly #settled = new Set<string>();
  #found: GpuDay[] = [];

  /** The day that is due, today first, and then from yesterday on back. */
  rows(now: number): Row[] {
    const days = lastDays(now, mostGpuDays);
    const due = days.find(
      (day) => !this.#settled.has(day) && now - (this.#asked.get(day) ?? -Infinity) >= everyMs,
    );
    if (due === undefined) return [];
    this.#asked.set(due, now);
    const { from, to } = boundsOf(due);
    return [['gpu-day', due, from / 1_000, Math.floor(Math.min(to, now) / 1_000)]];
  }

  read({ controller }: Facts, now: number): void {
    for (const day of controller?.accounting?.gpuDays ?? []) {
      this.#found.push(day);
      const askedAt = this.#asked.get(day.day) ?? now;
      if (askedAt >= boundsOf(day.day).to + settlesAfterMs) this.#settled.add(day.day);
    }
    for (const known of [this.#asked, this.#settled])
      for (const day of known.keys())
        if (boundsOf(day).to < now - mostGpuDays * 86_400_000) known.delete(day);
  }

  /** What was answered since it was taken last. */
  take(): GpuDay[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }
}

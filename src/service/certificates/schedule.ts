/** When a certificate is renewed, and how long a failed attempt waits. */
import { retryDelay } from '../../lib/limits.ts';

const hourMs = 3_600_000;
const longestRetryMs = 6 * hourMs;
/** No authority means longer; what it says beyond is taken for a mistake. */
const longestWaitMs = 7 * 24 * hourMs;
/** The first attempt after a failure waits a minute at most: authorities count failures by the hour. */
const firstDoublings = 6;

/** At two thirds of its life, and up to a hundredth of it later, so that not everybody's come at once. `random`: 0 to 1. */
export function renewalAt(
  { beginsAt, endsAt }: { beginsAt: number; endsAt: number },
  random: number,
): number {
  const lifeMs = endsAt - beginsAt;
  return beginsAt + (lifeMs * 2) / 3 + (lifeMs / 100) * random;
}

/** After so many failures in a row; `askedMs`: what the authority itself said. */
export function retryAfter(failures: number, random: number, askedMs = 0): number {
  const own = retryDelay(failures + firstDoublings, random, longestRetryMs);
  return Math.max(own, Math.min(askedMs, longestWaitMs));
}

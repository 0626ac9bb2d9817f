/** How often a gateway process failed to start of late, why, and when it is tried again. */
import { retryDelay } from '../../lib/limits.ts';

const longestRetryMs = 30_000;
/** One that served for so long did not fail to start. */
const stableMs = 10_000;

export class Attempts {
  /** Why there is none; undefined when nothing went wrong since one listened. */
  fault: string | undefined;
  #failures = 0;
  #retryAt = 0;

  get isDue(): boolean {
    return performance.now() >= this.#retryAt;
  }

  /** One could not be had, or ended when it had served for `servedMs`. One that served well is replaced at once. */
  failed(error: unknown, servedMs = 0): { failures: number; retryMs: number } {
    this.fault = error instanceof Error ? error.message : 'it cannot be started';
    this.#failures = servedMs > stableMs ? 0 : this.#failures + 1;
    const failures = this.#failures;
    const retryMs = failures === 0 ? 0 : retryDelay(failures, Math.random(), longestRetryMs);
    this.#retryAt = performance.now() + retryMs;
    return { failures, retryMs };
  }
}

/** Timing of logins: the login timeout, the wait for the person's sign-in, and the warnings of a session that will end for want of one. */
import type { Route } from '../decision.ts';
import type { GatewayLimits } from '../limits.ts';
import type { Barrier } from '../transport/barrier.ts';
import type { Admission, Refusal } from './admission.ts';

export interface LoginTimeOptions {
  barrier: Barrier;
  limits: GatewayLimits;
  admission: Admission;
  /** Gives back the slot for logins in progress; safe to call again. */
  leave(): void;
  onLate(): void;
}

export class LoginTime {
  readonly #options: LoginTimeOptions;
  #timer: NodeJS.Timeout;
  #userId: string | undefined;

  constructor(options: LoginTimeOptions) {
    this.#options = options;
    this.#timer = options.barrier.after(options.limits.loginGraceMs, options.onLate);
  }

  /** Starts the wait for a sign-in, unless that is refused. A waiting login holds no slot, and counts for its person. */
  wait(userId: string): Refusal | undefined {
    const { barrier, limits, admission, leave, onLate } = this.#options;
    const refusal = this.#userId === undefined ? admission.wait(userId) : undefined;
    if (refusal) return refusal;
    this.#userId ??= userId;
    leave();
    this.stop();
    this.#timer = barrier.after(limits.signInWaitMs + limits.loginGraceMs, onLate);
    return undefined;
  }

  endWait(): void {
    if (this.#userId !== undefined) this.#options.admission.endWait(this.#userId);
    this.#userId = undefined;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Time before the end of a session at which it warns. */
const warningsMs = [15 * 60_000, 5 * 60_000];

/** Takes the remaining time from each recheck, and notifies when the next warning is due. A sign-in meanwhile puts the end off. */
export function createLapseWarnings(notify: (text: string) => void): (lapse: Route['lapse']) => void {
  let said = 0;
  return (lapse) => {
    const { leftMs = Number.POSITIVE_INFINITY, text = '' } = lapse ?? {};
    const due = warningsMs.filter((ms) => leftMs <= ms).length;
    if (due > said) notify(`This session ends in ${duration(leftMs)}: ${text}`);
    said = due;
  };
}

/** `15 min`, `40 s`. */
export function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes >= 1 ? `${minutes} min` : `${Math.round(ms / 1000)} s`;
}

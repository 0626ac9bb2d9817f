/** Time at the gateway: how long a login may take, which waits for its person's sign-in, and what a session says before it ends for want of one. */
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

  /** It waits from now on, unless that is refused. Meanwhile it takes no slot from logins that go on, and counts for its person. */
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

/** How long before its end a session says so. */
const warningsMs = [15 * 60_000, 5 * 60_000];

/** Takes what each recheck knows of the end, and says it when the next warning is due. A sign-in meanwhile puts the end off. */
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

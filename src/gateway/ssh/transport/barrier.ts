/**
 * The barrier of one connection. Socket events, timers, promises and calls from outside run inside it: an exception
 * there ends this connection, and reaches neither the process nor another connection. In this
 * folder nothing listens to a socket or starts a timer without it (test/gateway/barrier.test.ts).
 */
export interface Barrier {
  /** The same function, from which no exception escapes. */
  guard<A extends unknown[]>(handler: (...args: A) => void): (...args: A) => void;
  /** A guarded timer that does not keep the process alive. */
  after(ms: number, handler: () => void): NodeJS.Timeout;
  watch(promise: Promise<unknown>): Promise<void>;
  /** What to do when something was thrown. Every step runs, in order, whatever the others throw. */
  onFault(step: (cause: unknown) => void): void;
}

/** For one connection with all that belongs to it, such as its connection to a login node. */
export function createBarrier(): Barrier {
  const steps: ((cause: unknown) => void)[] = [];
  let broken = false;

  function fault(cause: unknown) {
    if (broken) return;
    broken = true;
    for (const step of steps) {
      try {
        step(cause);
      } catch {
        // The next step must run all the same; the first cause is the one that is reported.
      }
    }
  }

  function guard<A extends unknown[]>(handler: (...args: A) => void) {
    return (...args: A) => {
      try {
        handler(...args);
      } catch (cause) {
        fault(cause);
      }
    };
  }

  return {
    guard,
    after: (ms, handler) => setTimeout(guard(handler), ms).unref(),
    watch: (promise) => promise.then(() => {}, fault),
    onFault: (step) => void steps.push(step),
  };
}

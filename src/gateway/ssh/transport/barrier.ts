/**
 * The barrier of one connection. Socket events, timers, promises and outside calls run inside it: an exception there
 * ends this connection, and reaches neither the process nor another connection. In this folder all socket listeners
 * and timers go through it (test/gateway/barrier.test.ts).
 */
export interface Barrier {
  /** Wraps a handler so that no exception escapes. */
  guard<A extends unknown[]>(handler: (...args: A) => void): (...args: A) => void;
  /** A guarded timer that does not keep the process alive. */
  after(ms: number, handler: () => void): NodeJS.Timeout;
  watch(promise: Promise<unknown>): Promise<void>;
  /** Adds a step that runs after an exception. Every step runs, in order, even if others throw. */
  onFault(step: (cause: unknown) => void): void;
}

/** Creates the barrier of one connection and of its connection to a login node. */
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
        // The next step must run all the same; the first cause is the reported one.
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

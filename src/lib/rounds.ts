/** Repeated background work, one round at a time. */

export interface Rounds {
  /** Runs a round now, or once more when the running one has ended. */
  wake(): void;
  /** Starts no more rounds. Resolves when the running one has ended. */
  stop(): Promise<void>;
}

/**
 * Runs a round at once, or after `firstMs`, and then again at intervals and when woken. A round may resolve to the
 * wait for the next one, instead of `everyMs`. A failed round is followed by the next one all the same.
 */
export function startRounds(
  round: (stopping: AbortSignal) => Promise<number | undefined> | Promise<void>,
  { firstMs = 0, everyMs, onFault }: { firstMs?: number; everyMs: number; onFault(error: unknown): void },
): Rounds {
  const stopping = new AbortController();
  const { signal } = stopping;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isDue = false;

  async function run(): Promise<void> {
    let waitMs = everyMs;
    while (isDue && !signal.aborted) {
      isDue = false;
      try {
        waitMs = (await round(signal)) ?? everyMs;
      } catch (error) {
        waitMs = everyMs;
        onFault(error);
      }
    }
    running = undefined;
    if (!signal.aborted) timer = setTimeout(wake, waitMs).unref();
  }

  function wake(): void {
    isDue = true;
    if (running || signal.aborted) return;
    clearTimeout(timer);
    running = run();
  }

  if (firstMs > 0) timer = setTimeout(wake, firstMs).unref();
  else wake();
  return {
    wake,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

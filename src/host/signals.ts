/** What signals ask of the service: SIGINT and SIGTERM that it stops, SIGHUP that it starts anew with what is on disk. */

export interface Signals {
  /** Resolves with the name of a signal to stop or to reload, as soon as there is one. */
  next(): Promise<NodeJS.Signals>;
  /** Whether it was asked to stop. */
  readonly isStopping: boolean;
  /** Resolves when it is asked to stop. */
  readonly stopping: Promise<void>;
}

/** Listens from now on: what comes while the service starts counts as well. */
export function listenForSignals(): Signals {
  let stop: NodeJS.Signals | undefined;
  let reload = false;
  let wake = () => {};
  const stopping = Promise.withResolvers<void>();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // Whoever asks twice does not want to wait for anything.
      if (stop === name) process.exit(1);
      stop = name;
      stopping.resolve();
      wake();
    });
  }
  process.on('SIGHUP', () => {
    reload = true;
    wake();
  });
  return {
    get isStopping() {
      return stop !== undefined;
    },
    stopping: stopping.promise,
    async next() {
      while (stop === undefined && !reload)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      reload = false;
      return stop ?? 'SIGHUP';
    },
  };
}

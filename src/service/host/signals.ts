/**
 * The meaning of signals: SIGINT and SIGTERM stop the service; SIGUSR2 stops it for another to follow, to which the
 * gateway's processes are left; SIGHUP reloads the settings on disk.
 */

export interface Signals {
  next(): Promise<NodeJS.Signals>;
  reload(): void;
  readonly stop: NodeJS.Signals | undefined;
  readonly stopping: Promise<void>;
}

/** Listens from now on: a signal during the start counts as well. */
export function listenForSignals(): Signals {
  let stop: NodeJS.Signals | undefined;
  let isReload = false;
  let wake = () => {};
  const stopping = Promise.withResolvers<void>();
  const reload = () => {
    isReload = true;
    wake();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGUSR2', 'SIGHUP'] as const) {
    process.on(name, () => {
      // The terminal of the service was closed: that ends it, like other programs.
      if (name === 'SIGHUP' && !process.stderr.isTTY) return reload();
      // The same signal twice: exits without waiting for anything.
      if (stop === name) process.exit(1);
      stop = name;
      stopping.resolve();
      wake();
    });
  }
  return {
    get stop() {
      return stop;
    },
    stopping: stopping.promise,
    reload,
    async next() {
      while (stop === undefined && !isReload)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      isReload = false;
      return stop ?? 'SIGHUP';
    },
  };
}

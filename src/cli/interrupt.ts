/** Waits that Ctrl-C ends with a sentence. */
import { CliError } from './exit.ts';

/** Runs `work` with a signal that Ctrl-C aborts. */
export async function interruptible<T>(
  sentence: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new CliError('interrupted', sentence));
  process.once('SIGINT', interrupt);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', interrupt);
  }
}

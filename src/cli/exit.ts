/** Exit statuses of the program, and the errors that lead to them. */
import { exitArguments } from '../lib/packaging.ts';

let hasThreadLeft = false;

export function leaveThreadBehind(): void {
  hasThreadLeft = true;
}

/** Ends the process with this status if a thread was left behind; returns if none was. */
export function endDespiteThreads(status: number): void {
  // Replacing the program (execve) is the only way to end its threads and keep the exit status.
  if (hasThreadLeft) process.execve?.(process.execPath, [process.argv0, ...exitArguments(status)], {});
}

/**
 * The outcomes of a command, and the one map from them to the exit statuses.
 *
 * `call` and `auth` use only 0, 1, 2 and 130: by the contract a failed request exits 1, so `contractStatus` maps the finer
 * ones to it. `ssh` exits with the status of ssh itself once that has started.
 */
export const exitStatus = {
  ok: 0,
  failure: 1,
  usage: 2,
  notSignedIn: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  unreachable: 7,
  interrupted: 130, // 128 + SIGINT, as shells report it
} as const;

export type Failed = Exclude<keyof typeof exitStatus, 'ok'>;

/** An error that ends a command, with one plain sentence for the person at the terminal. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly outcome: Failed;

  constructor(outcome: Failed, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.outcome = outcome;
  }
}

export function failure(message: string, cause?: unknown): CliError {
  return new CliError('failure', message, { cause });
}

export function usage(message: string): CliError {
  return new CliError('usage', message);
}

export function outcomeOf(status: number, isRetryable: boolean): Failed {
  if (status === 401) return 'notSignedIn';
  if (status === 403) return 'forbidden';
  if (status === 404) return 'notFound';
  if (status === 409 || status === 412) return 'conflict';
  return status > 500 && isRetryable ? 'unreachable' : 'failure';
}

/** Runs `call` or `auth`, whose failures all have one status; resolves to the exit status. */
export async function contractStatus(work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return exitStatus.ok;
  } catch (error) {
    if (!(error instanceof CliError) || error.outcome === 'usage' || error.outcome === 'interrupted')
      throw error;
    throw failure(error.message, error.cause);
  }
}

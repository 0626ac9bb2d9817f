/** How a command can end, and the one map from that to the status the shell sees. */
export type Outcome = 'ok' | 'failure' | 'usage' | 'interrupted';

export const exitStatus: Readonly<Record<Outcome, number>> = {
  ok: 0,
  failure: 1,
  usage: 2,
  interrupted: 130, // 128 + SIGINT, as shells report it
};

/** A command that cannot go on, said in one plain sentence for the person at the terminal. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly outcome: Exclude<Outcome, 'ok'>;

  constructor(outcome: Exclude<Outcome, 'ok'>, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.outcome = outcome;
  }
}

/** The request was understood and did not succeed. */
export function failure(message: string, cause?: unknown): CliError {
  return new CliError('failure', message, { cause });
}

/** The command line itself is wrong. */
export function usage(message: string): CliError {
  return new CliError('usage', message);
}

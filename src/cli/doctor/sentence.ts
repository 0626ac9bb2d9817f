/** What a step of `doctor` could not do, as the other commands say it. */
import { CliError } from '../exit.ts';

/** The sentence of an error that commands report; anything else is thrown on. */
export function sentenceOf(error: unknown): string {
  if (error instanceof CliError) return error.message;
  throw error;
}

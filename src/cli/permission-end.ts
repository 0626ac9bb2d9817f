/** When a permission ends, as it is given on the command line. */
import { parseEnd } from './time.ts';
import { optional } from './verb.ts';

export const expiresFlag = optional(
  '--expires <time>',
  'when they end by themselves: a time, a span from now such as 7d, or never',
);

/** Null for never; undefined where it was not given. */
export function endOf(text: string | undefined): string | null | undefined {
  return text === 'never' ? null : parseEnd('--expires', text, Date.now());
}

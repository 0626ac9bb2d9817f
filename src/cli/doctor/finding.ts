/** What `doctor` finds on this machine, a line each. */

export interface Finding {
  /** `warn`: it works today. `wrong`: it keeps the person from a shell. */
  verdict: 'ok' | 'warn' | 'wrong';
  about: string;
  /** What is so. */
  text: string;
  /** What to do about it, where `text` does not say so. */
  fix?: string;
}

export const ok = (about: string, text: string): Finding => ({ verdict: 'ok', about, text });
export const warn = (about: string, text: string, fix: string): Finding => ({
  verdict: 'warn',
  about,
  text,
  fix,
});
export const wrong = (about: string, text: string, fix?: string): Finding => ({
  verdict: 'wrong',
  about,
  text,
  ...(fix !== undefined && { fix }),
});

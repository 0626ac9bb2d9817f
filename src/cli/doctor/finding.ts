/** The findings of `doctor` on this machine, one line each, and helpers of its checks. */
import { execFile } from 'node:child_process';
import { commandIo } from '../../lib/command-io.ts';
import { CliError } from '../exit.ts';

export interface Finding {
  /** `warn`: works today. `wrong`: keeps the person from a shell. */
  verdict: 'ok' | 'warn' | 'wrong';
  about: string;
  text: string;
  fix?: string;
}

export const findingsAbout = (about: string) => ({
  ok: (text: string): Finding => ({ verdict: 'ok', about, text }),
  warn: (text: string, fix: string): Finding => ({ verdict: 'warn', about, text, fix }),
  wrong: (text: string, fix?: string): Finding => ({
    verdict: 'wrong',
    about,
    text,
    ...(fix !== undefined && { fix }),
  }),
});

/** The message of an error that commands report; rethrows any other error. */
export function sentenceOf(error: unknown): string {
  if (error instanceof CliError) return error.message;
  throw error;
}

interface Output {
  status: number | null | undefined;
  stdout: string;
  stderr: string;
}

export function askProgram(program: string, args: readonly string[], timeoutMs: number): Promise<Output> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      { env: commandIo().env, timeout: timeoutMs, maxBuffer: 2 ** 20, encoding: 'utf8', windowsHide: true },
      (error, stdout, stderr) => {
        if (error && (error as NodeJS.ErrnoException).code === 'ENOENT')
          return resolve({ status: undefined, stdout: '', stderr: '' });
        resolve({ status: child.exitCode, stdout, stderr });
      },
    );
    // There is no input: a write error on its stdin is ignored.
    child.stdin?.on('error', () => {}).end();
  });
}

/** What a program of this machine says, within bounds. */
import { execFile } from 'node:child_process';

export interface Said {
  /** Undefined where it is not installed; null where it did not end in time. */
  status: number | null | undefined;
  stdout: string;
  stderr: string;
}

export function askProgram(program: string, args: readonly string[], timeoutMs: number): Promise<Said> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      { timeout: timeoutMs, maxBuffer: 2 ** 20, encoding: 'utf8', windowsHide: true },
      (error, stdout, stderr) => {
        if (error && (error as NodeJS.ErrnoException).code === 'ENOENT')
          return resolve({ status: undefined, stdout: '', stderr: '' });
        resolve({ status: child.exitCode, stdout, stderr });
      },
    );
    // Nothing is there for it to read.
    child.stdin?.on('error', () => {}).end();
  });
}

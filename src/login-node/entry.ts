import { basename, dirname, join } from 'node:path';

/** The project's root: what must be readable for this room's processes to start. */
export const codeRoot = join(import.meta.dirname, '..', '..');

export type Role = 'serve' | 'sftp';

/**
 * How to start another process of this room. The one place to change for a single-file executable. The
 * directories can be given as another mount namespace shows them.
 */
export function roomProcess(
  role: Role,
  seen = { codeDir: codeRoot, execDir: dirname(process.execPath) },
): { file: string; args: string[] } {
  return {
    file: join(seen.execDir, basename(process.execPath)),
    args: [join(seen.codeDir, 'src', 'login-node', 'main.ts'), role],
  };
}

import { basename, dirname, join } from 'node:path';
import { codeRoot, loginNodeArguments } from '../../../../lib/packaging.ts';

export type Role = 'serve' | 'sftp';

/**
 * How to start another process of this room. The directories can be given as another mount namespace shows them.
 */
export function roomProcess(
  role: Role,
  seen = { codeDir: codeRoot, execDir: dirname(process.execPath) },
): { file: string; args: string[] } {
  return {
    file: join(seen.execDir, basename(process.execPath)),
    args: [...loginNodeArguments(seen.codeDir), role],
  };
}

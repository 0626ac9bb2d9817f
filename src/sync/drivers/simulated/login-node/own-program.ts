import { basename, dirname, join } from 'node:path';
import { codeRoot, loginNodeArguments } from '../../../../lib/packaging.ts';

/** How to start this program again as `role` of `main.ts`, with the directories as a mount namespace shows them. */
export function ownProgram(
  role: 'serve' | 'sftp',
  seen = { codeDir: codeRoot, execDir: dirname(process.execPath) },
): { file: string; args: string[] } {
  return {
    file: join(seen.execDir, basename(process.execPath)),
    args: [...loginNodeArguments(seen.codeDir), role],
  };
}

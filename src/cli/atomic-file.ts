/** Files that a reader sees as they were or as they are now, never in between, also after a crash. */
import { randomUUID } from 'node:crypto';
import { open, realpath, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { failure } from './exit.ts';
import { reasonOf } from './yaml-file.ts';

/**
 * Writes `text` to `path`, readable by its owner alone. A link stays one: what it points to is replaced. Throws `failed` with
 * the reason.
 */
export async function writeAtomically(path: string, text: string, failed: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const temporary = `${target}.${randomUUID()}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await replace(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw failure(`${failed}: ${reasonOf(error as NodeJS.ErrnoException)}.`, error);
  }
}

/** On Windows a file that another process has open cannot be replaced, so this tries again for a while. */
async function replace(temporary: string, target: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(temporary, target);
    } catch (error) {
      if (attempt === 10 || !isHeldOnWindows(error)) throw error;
      await sleep(20 * attempt);
    }
  }
}

/** Whether Windows refuses it because another process has the file open, or has only just deleted it. */
export function isHeldOnWindows(error: unknown, platform: NodeJS.Platform = process.platform): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return platform === 'win32' && ['EPERM', 'EACCES', 'EBUSY'].includes(code);
}

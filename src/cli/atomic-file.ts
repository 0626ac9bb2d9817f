/** Files that a reader sees as they were or as they are now, never in between, also after a crash. */
import { randomUUID } from 'node:crypto';
import { open, realpath, rename, rm } from 'node:fs/promises';

/** Writes `text` to `path`, readable by its owner alone. A link stays one: what it points to is replaced. */
export async function writeAtomically(path: string, text: string): Promise<void> {
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
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

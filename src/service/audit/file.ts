/** A file that lines are appended to, and that others read; where it was moved away, it is begun anew. */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';

export interface FileOptions {
  path: string;
  /** The ID of the group that may read it; undefined: none. */
  group: number | undefined;
}

interface Last {
  kind: 'entry' | 'head';
  seq: number;
  hash: string;
}

/** The longest entry and a page of heads are shorter. */
const tailBytes = 128 * 1024;
/** O_NONBLOCK: do not block on a pipe without a reader. */
const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

export function openLines({ path, group }: FileOptions) {
  let handle: FileHandle | undefined;

  async function current(): Promise<FileHandle> {
    if (handle && (await isStillThere(handle, path))) return handle;
    await shut();
    handle = await open(path, flags, 0o600);
    await settle(handle, { path, group });
    return handle;
  }

  async function shut(): Promise<void> {
    const old = handle;
    handle = undefined;
    await old?.close().catch(() => {});
  }

  async function using<T>(body: (file: FileHandle) => Promise<T>): Promise<T> {
    try {
      return await body(await current());
    } catch (error) {
      await shut();
      throw error;
    }
  }

  return {
    /** The last entry and the last head that it has. */
    last: () =>
      using(async (file) => {
        const lines = (await readEnd(file, tailBytes)).split('\n').slice(0, -1);
        const messages = lines.map(parse).filter((message) => message !== undefined);
        const last = (kind: string) => messages.findLast((message) => message.kind === kind) ?? [];
        return [last('entry'), last('head')].flat();
      }),
    /** Resolves once they are on disk; rejects where it is not known how many are. */
    append: (lines: readonly string[]) =>
      using(async (file) => {
        // A full disk or a crash can have cut the last line: what follows must not become a part of it.
        const start = ['', '\n'].includes(await readEnd(file, 1)) ? '' : '\n';
        await file.appendFile(`${start}${lines.map((line) => `${line}\n`).join('')}`);
        await file.datasync();
      }),
    close: () => void shut(),
  };
}

/** Sets who may read it, whatever the umask is and however it was made. Throws where that cannot be set. */
async function settle(file: FileHandle, { path, group }: FileOptions): Promise<void> {
  const stats = await file.stat();
  if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
  const wanted = group === undefined ? 0o600 : 0o640;
  try {
    // The group first: no other is to read it.
    if (group !== undefined && stats.gid !== group) await file.chown(stats.uid, group);
    if ((stats.mode & 0o777) !== wanted) await file.chmod(wanted);
  } catch (error) {
    const member = group === undefined ? '' : ', which must be in the group of audit.group';
    const message = `the mode and group of ${path} cannot be set: it must belong to the service's account${member}`;
    throw new Error(message, { cause: error });
  }
}

async function isStillThere(handle: FileHandle, path: string): Promise<boolean> {
  const [mine, there] = await Promise.all([handle.stat(), stat(path).catch(() => undefined)]);
  return there?.ino === mine.ino && there.dev === mine.dev;
}

async function readEnd(file: FileHandle, most: number): Promise<string> {
  const { size } = await file.stat();
  const length = Math.min(size, most);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString('latin1', 0, bytesRead);
}

function parse(line: string): Last | undefined {
  try {
    const { kind, seq, hash } = JSON.parse(line);
    if ((kind === 'entry' || kind === 'head') && Number.isSafeInteger(seq) && typeof hash === 'string')
      return { kind, seq, hash };
  } catch {
    // Not a line of ours.
  }
  return undefined;
}

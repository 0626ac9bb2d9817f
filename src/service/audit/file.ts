/** The audit trail in a file: one line of JSON a message, appended; a file that was moved away is begun anew. */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { AuditMessage } from './messages.ts';
import type { Destination } from './sender.ts';

/** The longest entry and a page of heads are shorter. */
const tailBytes = 128 * 1024;
/** O_NONBLOCK: do not block on a pipe without a reader. */
const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** The file at `path`, made with mode 0640. */
export function fileDestination(path: string): Destination {
  let handle: FileHandle | undefined;

  /** The file that is at the path now. */
  async function current(): Promise<FileHandle> {
    if (handle && (await isStillThere(handle, path))) return handle;
    await shut();
    handle = await open(path, flags, 0o640);
    if (!(await handle.stat()).isFile()) {
      await shut();
      throw new Error(`${path} is not a regular file`);
    }
    return handle;
  }

  async function shut(): Promise<void> {
    const old = handle;
    handle = undefined;
    await old?.close().catch(() => {});
  }

  return {
    name: `file:${path}`,
    async last() {
      const lines = (await readEnd(await current(), tailBytes)).split('\n').slice(0, -1);
      const messages = lines.map(parse).filter((message) => message !== undefined);
      const last = (kind: string) => messages.findLast((message) => message.kind === kind) ?? [];
      return [last('entry'), last('head')].flat();
    },
    async send(messages) {
      try {
        const file = await current();
        // A full disk or a crash can have cut the last line: what follows must not become a part of it.
        const start = ['', '\n'].includes(await readEnd(file, 1)) ? '' : '\n';
        await file.appendFile(`${start}${messages.map(({ json }) => `${json}\n`).join('')}`);
        await file.datasync();
      } catch (error) {
        await shut();
        throw error;
      }
    },
    close: () => void shut(),
  };
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

function parse(line: string): Pick<AuditMessage, 'kind' | 'seq' | 'hash'> | undefined {
  try {
    const { kind, seq, hash } = JSON.parse(line);
    if ((kind === 'entry' || kind === 'head') && Number.isSafeInteger(seq) && typeof hash === 'string')
      return { kind, seq, hash };
  } catch {
    // Not a line of ours.
  }
  return undefined;
}

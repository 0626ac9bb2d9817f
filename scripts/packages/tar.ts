/** Tar archives (ustar) whose bytes follow from their content alone: no owner, one time, the order that was given. */
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

export interface TarEntry {
  name: string;
  mode: number;
  /** A file on the disk by its path, or what is in it; left out for a directory. */
  content?: Buffer | { path: string };
}

export const block = 512;

/** Writes the archive to `file`. `seconds` is the time of every entry. */
export async function writeTar(
  file: string,
  entries: readonly TarEntry[],
  { seconds, gzip }: { seconds: number; gzip?: boolean },
): Promise<void> {
  const archive = Readable.from(archiveOf(entries, seconds));
  // Node writes no time into the head of a gzip file.
  if (gzip) await pipeline(archive, createGzip(), createWriteStream(file));
  else await pipeline(archive, createWriteStream(file));
}

async function* archiveOf(entries: readonly TarEntry[], seconds: number): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    const { content } = entry;
    const size = content === undefined ? 0 : Buffer.isBuffer(content) ? content.length : sizeOf(content.path);
    yield header(entry, size, seconds);
    if (Buffer.isBuffer(content)) yield content;
    else if (content) yield* createReadStream(content.path, { highWaterMark: 1 << 20 });
    if (size % block > 0) yield Buffer.alloc(block - (size % block));
  }
  yield Buffer.alloc(2 * block);
}

/** What stands before an entry's content. `size` in bytes; `seconds` since 1970. */
export function header({ name, mode, content }: TarEntry, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long a name for a tar archive.`);
  const head = Buffer.alloc(block);
  const octal = (value: number, at: number, length: number) =>
    head.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  head.write(name, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(seconds, 136, 12);
  head.fill(' ', 148, 156);
  head.write(content === undefined ? '5' : '0', 156, 'latin1');
  head.write('ustar\u000000', 257, 'latin1');
  octal(0, 329, 8);
  octal(0, 337, 8);
  head.write(
    `${head
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1',
  );
  return head;
}

const sizeOf = (path: string) => statSync(path).size;

/** A tar (ustar) in gzip with neither times nor owners in it, so that the same files make the same bytes. */
import { gzipSync } from 'node:zlib';
import { block, header } from '../../packages/tar.ts';

export interface TarEntry {
  name: string;
  mode: number;
  content: Buffer;
}

export function packTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const { length } = entry.content;
    return [header(entry, length, 0), entry.content, Buffer.alloc((block - (length % block)) % block)];
  });
  const packed = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * block)]), { level: 9 });
  // The byte that names the system it was made on.
  packed[9] = 255;
  return packed;
}

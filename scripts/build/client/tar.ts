/** A tar (ustar) in gzip with neither times nor owners in it, so that the same files make the same bytes. */
import { gzipSync } from 'node:zlib';

export interface TarEntry {
  name: string;
  mode: number;
  content: Buffer;
}

const blockBytes = 512;

export function packTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const padding = Buffer.alloc((blockBytes - (entry.content.length % blockBytes)) % blockBytes);
    return [header(entry), entry.content, padding];
  });
  const packed = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]), { level: 9 });
  // The byte that names the system it was made on.
  packed[9] = 255;
  return packed;
}

function header({ name, mode, content }: TarEntry): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long for a tar`);
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;
  block.write(name, 0);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(content.length, 12), 124);
  block.write(octal(0, 12), 136);
  block.write(' '.repeat(8), 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

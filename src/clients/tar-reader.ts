/**
 * Reads a tar (ustar) that comes in pieces: regular files with plain names and nothing else, so that nothing in it can name a
 * place outside of the folder it is unpacked into. What is more than that is refused, not skipped.
 */
import { DomainError } from '../domain/error.ts';

export interface TarEntry {
  name: string;
  bytes: number;
}

/** What is done with the entries, one after the other. */
export interface TarSink {
  begin(entry: TarEntry): void;
  write(piece: Buffer): void;
  end(): void;
}

const blockBytes = 512;
/** Zeros at the end, which tar writes to fill what it calls a record. */
const mostEndBlocks = 1024;

/** Hands each entry to `sink`. Throws `invalid_request` with a sentence where it is no such tar. */
export async function readTar(pieces: AsyncIterable<Buffer>, sink: TarSink): Promise<void> {
  /** Bytes that belong to no whole header yet. */
  let head = Buffer.alloc(0);
  /** Of the entry under way, and of what fills its last block. */
  let left = 0;
  let padding = 0;
  let endBlocks = 0;
  for await (const piece of pieces) {
    let at = 0;
    while (at < piece.length) {
      if (left > 0) {
        const part = piece.subarray(at, at + left);
        sink.write(part);
        left -= part.length;
        at += part.length;
        if (left === 0) sink.end();
      } else if (padding > 0) {
        const part = Math.min(padding, piece.length - at);
        padding -= part;
        at += part;
      } else {
        const part = piece.subarray(at, at + blockBytes - head.length);
        head = Buffer.concat([head, part]);
        at += part.length;
        if (head.length < blockBytes) break;
        const entry = endBlocks > 0 ? endBlock(head) : readHeader(head);
        head = Buffer.alloc(0);
        if (!entry) {
          if (++endBlocks > mostEndBlocks) throw refuse('its end is too long');
          continue;
        }
        left = entry.bytes;
        padding = (blockBytes - (left % blockBytes)) % blockBytes;
        sink.begin(entry);
        if (left === 0) sink.end();
      }
    }
  }
  if (endBlocks === 0 || left > 0 || head.length > 0) throw refuse('it ends in the middle');
}

function endBlock(block: Buffer): undefined {
  if (block.some((byte) => byte !== 0)) throw refuse('something follows behind its end');
}

/** The entry that a header begins; undefined for the block of zeros at the end. */
function readHeader(block: Buffer): TarEntry | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const field = (from: number, length: number) => {
    const bytes = block.subarray(from, from + length);
    const end = bytes.indexOf(0);
    return bytes.subarray(0, end < 0 ? length : end).toString('latin1');
  };
  const number = (from: number, length: number) => {
    const text = field(from, length).trim();
    if (!/^[0-7]{1,11}$/.test(text)) throw refuse('a number in it is none');
    return Number.parseInt(text, 8);
  };
  const summed = Buffer.from(block).fill(' ', 148, 156);
  if (field(257, 5) !== 'ustar') throw refuse('it is no tar');
  if (summed.reduce((sum, byte) => sum + byte, 0) !== number(148, 8))
    throw refuse('a header in it is damaged');
  const name = field(0, 100);
  const type = field(156, 1);
  if (type !== '0' && type !== '') throw refuse(`'${printable(name)}' is no regular file`);
  if (field(345, 155) !== '' || !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name))
    throw refuse(`'${printable(name)}' is no name that a file in it may have`);
  return { name, bytes: number(124, 12) };
}

function printable(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, 100);
}

export function refuse(why: string): DomainError {
  return new DomainError('invalid_request', `The release file cannot be used: ${why}.`);
}

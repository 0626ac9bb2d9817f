/**
 * Puts a blob into an ELF executable where Node looks for one (a note named NODE_SEA_BLOB), and leaves out what only
 * debuggers read. Our own, and not the `postject` package, of which we need one case (docs/decisions/0013).
 *
 * The blob goes to the end of the file, with a LOAD segment of its own behind all others and, inside, a copy of the
 * notes that were there before. The table of segments stays where it is: it gains the LOAD and loses PHDR, which says
 * where the table is and which only an executable that can be loaded anywhere needs.
 */

interface Segment {
  type: number;
  flags: number;
  offset: number;
  address: number;
  fileSize: number;
  memorySize: number;
  align: number;
}

const type = { load: 1, note: 4, phdr: 6 };
const readable = 4;
/** The largest pages that a kernel of the architecture may have, by its number in ELF. */
const pages: Record<number, number> = { 62: 4096, 183: 65536 };
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:';
const noteName = 'NODE_SEA_BLOB';

/** The executable with the blob in it. Throws a sentence when it is not an executable of the kind described above. */
export function injectBlob(executable: Buffer, blob: Buffer): Buffer {
  const isKnown =
    executable.readUInt32BE(0) === 0x7f454c46 && // ELF
    executable.readUInt16BE(4) === 0x0201 && // 64 bits, little-endian
    executable.readUInt16LE(16) === 2; // loaded at a fixed address
  if (!isKnown) throw new Error('Node is not a 64-bit ELF executable with a fixed address.');
  const page = pages[executable.readUInt16LE(18)];
  if (!page) throw new Error('Node is for another processor than x86-64 and 64-bit ARM.');
  const tableAt = Number(executable.readBigUInt64LE(32));
  const entrySize = executable.readUInt16LE(54);
  const count = executable.readUInt16LE(56);
  const segments = Array.from({ length: count }, (_, index) => read(executable, tableAt + index * entrySize));
  const phdr = segments.findIndex((one) => one.type === type.phdr);
  const note = segments.findIndex((one) => one.type === type.note);
  const last = segments.findLastIndex((one) => one.type === type.load);
  const lastLoad = segments[last];
  const oldNote = segments[note];
  if (phdr < 0 || phdr > last || note < 0 || !lastLoad || !oldNote) {
    throw new Error('Node’s executable has other segments than expected.');
  }

  // Whatever lies behind the last segment's bytes is for debuggers and linkers.
  const loadedEnd = Math.max(...segments.map(({ offset, fileSize }) => offset + fileSize));
  const loaded = executable.subarray(0, loadedEnd);
  const offset = roundUp(loadedEnd, page);
  const address = roundUp(lastLoad.address + lastLoad.memorySize, page);
  const known = executable.subarray(oldNote.offset, oldNote.offset + oldNote.fileSize);
  const notes = Buffer.concat([known, noteHeader(blob.length), blob]);
  const size = roundUp(notes.length, page);
  const whole = Buffer.alloc(offset + size);
  loaded.copy(whole);
  notes.copy(whole, offset);

  const own = { flags: readable, offset, address };
  const load: Segment = { ...own, type: type.load, fileSize: size, memorySize: size, align: page };
  segments[note] = { ...own, type: type.note, fileSize: notes.length, memorySize: notes.length, align: 4 };
  segments.splice(last + 1, 0, load);
  segments.splice(phdr, 1);
  for (const [index, segment] of segments.entries()) write(whole, tableAt + index * entrySize, segment);
  // The table of sections was behind the segments as well.
  whole.writeBigUInt64LE(0n, 40);
  whole.fill(0, 58, 64);
  setFuse(whole);
  return whole;
}

/** Makes Node's start-up code search for a blob. */
function setFuse(executable: Buffer): void {
  const at = executable.indexOf(`${fuse}0`);
  if (at < 0 || executable.indexOf(`${fuse}0`, at + 1) >= 0) {
    throw new Error('Node’s executable cannot carry a program, or carries one already.');
  }
  executable.write('1', at + fuse.length, 'latin1');
}

function noteHeader(blobSize: number): Buffer {
  const name = Buffer.alloc(roundUp(noteName.length + 1, 4));
  name.write(noteName, 'latin1');
  const sizes = Buffer.alloc(12);
  sizes.writeUInt32LE(noteName.length + 1, 0);
  sizes.writeUInt32LE(blobSize, 4);
  return Buffer.concat([sizes, name]);
}

function read(file: Buffer, at: number): Segment {
  const long = (from: number) => Number(file.readBigUInt64LE(at + from));
  return {
    type: file.readUInt32LE(at),
    flags: file.readUInt32LE(at + 4),
    offset: long(8),
    address: long(16),
    fileSize: long(32),
    memorySize: long(40),
    align: long(48),
  };
}

function write(file: Buffer, at: number, segment: Segment): void {
  file.writeUInt32LE(segment.type, at);
  file.writeUInt32LE(segment.flags, at + 4);
  const { offset, address, fileSize, memorySize, align } = segment;
  for (const [index, value] of [offset, address, address, fileSize, memorySize, align].entries()) {
    file.writeBigUInt64LE(BigInt(value), at + 8 + index * 8);
  }
}

const roundUp = (value: number, to: number) => Math.ceil(value / to) * to;

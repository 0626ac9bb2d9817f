/**
 * Signs a Mach-O executable ad hoc, which macOS asks for on Apple silicon: SHA-256 of each page, in a code directory at the
 * end of the file. It says who made the file to nobody; it says that the pages are those that were signed.
 * (`codesign --sign -` does the same, on macOS only. The format is in Apple's cs_blobs.h, which xnu publishes.)
 */
import { createHash } from 'node:crypto';

/** As every linker signs. */
const pageSize = 4096;
const command = { segment: 0x19, codeSignature: 0x1d };
const magic = { machO: 0xfeedfacf, signature: 0xfade0cc0, codeDirectory: 0xfade0c02 };
const sha256 = { type: 2, size: 32 };
/** The version of code directories that has the fields of the executable segment. */
const version = 0x20400;
const adHoc = 0x2;
const isMainBinary = 1n;
const directorySize = 88;

interface Command {
  at: number;
  type: number;
}

interface Segment {
  at: number;
  name: string;
  offset: number;
  size: number;
}

/** The executable with a signature, in the place of one that it has. Throws a sentence when it is of another kind. */
export function signAdHoc(executable: Buffer, identifier: string): Buffer {
  const { commands, end } = commandsOf(executable);
  const segments = segmentsOf(executable, commands);
  const linkEdit = segments.find(({ name }) => name === '__LINKEDIT');
  const text = segments.find(({ name }) => name === '__TEXT');
  if (!linkEdit || !text || linkEdit.offset + linkEdit.size !== executable.length) {
    throw new Error('The Mach-O file has other segments than expected.');
  }
  const known = commands.find(({ type }) => type === command.codeSignature);
  const codeEnd = known ? executable.readUInt32LE(known.at + 8) : executable.length;
  const codeLimit = roundUp(codeEnd, 16);
  const signatureSize = roundUp(20 + sizeOfDirectory(identifier, codeLimit), 16);
  const signed = Buffer.alloc(codeLimit + signatureSize);
  executable.copy(signed, 0, 0, codeEnd);

  if (!known) addCommand(signed, end, firstContent(executable, commands));
  const at = known?.at ?? end;
  signed.writeUInt32LE(codeLimit, at + 8);
  signed.writeUInt32LE(signatureSize, at + 12);
  const size = signed.length - linkEdit.offset;
  signed.writeBigUInt64LE(BigInt(roundUp(size, 0x4000)), linkEdit.at + 32);
  signed.writeBigUInt64LE(BigInt(size), linkEdit.at + 48);

  const directory = codeDirectory(signed, codeLimit, identifier, text);
  const head = [magic.signature, 20 + directory.length, 1, 0, 20];
  for (const [index, field] of head.entries()) signed.writeUInt32BE(field, codeLimit + index * 4);
  directory.copy(signed, codeLimit + 20);
  return signed;
}

/** What a signed executable says of its pages, and what they are. */
export function signedPages(executable: Buffer): { said: Buffer[]; found: Buffer[] } {
  const known = commandsOf(executable).commands.find(({ type }) => type === command.codeSignature);
  if (!known) throw new Error('The Mach-O file has no signature.');
  const signature = executable.subarray(executable.readUInt32LE(known.at + 8));
  for (let index = 0; index < signature.readUInt32BE(8); index++) {
    const directory = signature.subarray(signature.readUInt32BE(16 + index * 8));
    if (directory.readUInt32BE(0) !== magic.codeDirectory || directory[37] !== sha256.type) continue;
    const hashes = directory.subarray(directory.readUInt32BE(16));
    const said = Array.from({ length: directory.readUInt32BE(28) }, (_, slot) =>
      hashes.subarray(slot * sha256.size, (slot + 1) * sha256.size),
    );
    return { said, found: pageHashes(executable, directory.readUInt32BE(32), 2 ** (directory[39] ?? 0)) };
  }
  throw new Error('The signature has no hashes by SHA-256.');
}

function sizeOfDirectory(identifier: string, codeLimit: number): number {
  return directorySize + Buffer.byteLength(identifier) + 1 + Math.ceil(codeLimit / pageSize) * sha256.size;
}

function codeDirectory(file: Buffer, codeLimit: number, identifier: string, text: Segment): Buffer {
  const name = Buffer.from(`${identifier}\0`);
  const hashes = pageHashes(file, codeLimit, pageSize);
  const directory = Buffer.alloc(sizeOfDirectory(identifier, codeLimit));
  const fields = [
    magic.codeDirectory,
    directory.length,
    version,
    adHoc,
    directorySize + name.length, // where the hashes are
    directorySize, // where the name is
    0, // of nothing else, such as entitlements
    hashes.length,
    codeLimit,
  ];
  for (const [index, field] of fields.entries()) directory.writeUInt32BE(field, index * 4);
  directory[36] = sha256.size;
  directory[37] = sha256.type;
  directory[39] = Math.log2(pageSize);
  directory.writeBigUInt64BE(BigInt(text.offset), 64);
  directory.writeBigUInt64BE(BigInt(text.size), 72);
  directory.writeBigUInt64BE(isMainBinary, 80);
  name.copy(directory, directorySize);
  Buffer.concat(hashes).copy(directory, directorySize + name.length);
  return directory;
}

function pageHashes(file: Buffer, limit: number, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(limit / size) }, (_, page) =>
    createHash('sha256')
      .update(file.subarray(page * size, Math.min((page + 1) * size, limit)))
      .digest(),
  );
}

function commandsOf(file: Buffer): { commands: Command[]; end: number } {
  if (file.length < 32 || file.readUInt32LE(0) !== magic.machO) {
    throw new Error('This is not a 64-bit Mach-O executable.');
  }
  const commands: Command[] = [];
  let at = 32;
  for (let index = 0; index < file.readUInt32LE(16); index++) {
    commands.push({ at, type: file.readUInt32LE(at) });
    at += file.readUInt32LE(at + 4);
  }
  return { commands, end: at };
}

function segmentsOf(file: Buffer, commands: Command[]): Segment[] {
  return commands
    .filter(({ type }) => type === command.segment)
    .map(({ at }) => ({
      at,
      name: file.toString('latin1', at + 8, at + 24).replace(/\0+$/, ''),
      offset: Number(file.readBigUInt64LE(at + 40)),
      size: Number(file.readBigUInt64LE(at + 48)),
    }));
}

/** Where the first section begins: commands end before it. */
function firstContent(file: Buffer, commands: Command[]): number {
  const offsets = commands
    .filter(({ type }) => type === command.segment)
    .flatMap(({ at }) =>
      Array.from({ length: file.readUInt32LE(at + 64) }, (_, index) =>
        file.readUInt32LE(at + 72 + index * 80 + 48),
      ),
    );
  return Math.min(...offsets.filter((offset) => offset > 0), file.length);
}

function addCommand(file: Buffer, end: number, limit: number): void {
  if (end + 16 > limit || file.subarray(end, end + 16).some((byte) => byte !== 0)) {
    throw new Error('The Mach-O file has no room for one more command.');
  }
  file.writeUInt32LE(command.codeSignature, end);
  file.writeUInt32LE(16, end + 4);
  file.writeUInt32LE(file.readUInt32LE(16) + 1, 16);
  file.writeUInt32LE(file.readUInt32LE(20) + 16, 20);
}

const roundUp = (value: number, to: number) => Math.ceil(value / to) * to;

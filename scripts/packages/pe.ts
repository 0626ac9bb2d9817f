/** Windows executables: without the signature of whoever made them, which no longer fits what is put into them. */

/** The executable without its signature. Throws a sentence when the signature is not the end of it. */
export function withoutSignature(executable: Buffer): Buffer {
  const { certificates } = offsetsIn(executable);
  const offset = executable.readUInt32LE(certificates);
  const size = executable.readUInt32LE(certificates + 4);
  if (offset === 0) return executable;
  if (offset + size !== executable.length) throw new Error('The signature is not at the end of the file.');
  const plain = Buffer.from(executable.subarray(0, offset));
  plain.fill(0, certificates, certificates + 8);
  return withChecksum(plain);
}

/** The executable with the checksum in its header that its content has now. */
export function withChecksum(executable: Buffer): Buffer {
  const { checksum } = offsetsIn(executable);
  const result = Buffer.from(executable);
  result.writeUInt32LE(0, checksum);
  let sum = 0;
  for (let at = 0; at < result.length; at += 2) {
    const word = at + 1 < result.length ? result.readUInt16LE(at) : (result[at] ?? 0);
    sum += word;
    sum = (sum & 0xffff) + (sum >>> 16);
  }
  result.writeUInt32LE(((sum & 0xffff) + (sum >>> 16) + result.length) >>> 0, checksum);
  return result;
}

function offsetsIn(file: Buffer): { checksum: number; certificates: number } {
  const header = file.length > 64 && file.toString('latin1', 0, 2) === 'MZ' ? file.readUInt32LE(60) : -1;
  const isKnown =
    header > 0 &&
    header + 24 + 112 + 40 <= file.length &&
    file.readUInt32LE(header) === 0x4550 && // PE
    file.readUInt16LE(header + 24) === 0x20b; // 64 bits
  if (!isKnown) throw new Error('This is not a 64-bit Windows executable.');
  const optional = header + 24;
  return { checksum: optional + 64, certificates: optional + 112 + 4 * 8 };
}

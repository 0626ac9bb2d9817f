/** What is signed for macOS, read by a program that shares nothing with the signer; and what is no longer signed for Windows. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { signAdHoc, signedPages } from '../../scripts/packages/mach-o.ts';
import { withChecksum, withoutSignature } from '../../scripts/packages/pe.ts';
import { temporaryDirectory } from '../support/directory.ts';

const python = '/usr/bin/python3';
const skip = existsSync(python) ? false : `${python} is not installed`;

function verified(executable: Buffer): string {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'executable');
  writeFileSync(file, executable);
  const script = join(import.meta.dirname, 'verify-mach-o.py');
  const { status, stdout } = spawnSync(python, [script, file], { encoding: 'utf8' });
  return `${status} ${stdout.trim()}`;
}

/** A small Mach-O file: __TEXT with one section, and __LINKEDIT up to the end. `room` is for more commands. */
function machO({ textSize = 0x4000, linkEditSize = 5001, room = 64 } = {}): Buffer {
  const file = Buffer.alloc(textSize + linkEditSize, 'andromeda');
  const commandsSize = 152 + 72;
  file.fill(0, 0, 32 + commandsSize + room);
  for (const [index, word] of [0xfeedfacf, 0x0100000c, 0, 2, 2, commandsSize, 0, 0].entries())
    file.writeUInt32LE(word, index * 4);
  const segment = (
    at: number,
    size: number,
    name: string,
    offset: number,
    used: number,
    sections: number,
  ) => {
    file.writeUInt32LE(0x19, at);
    file.writeUInt32LE(size, at + 4);
    file.write(name, at + 8);
    const memory = Math.ceil(used / 0x4000) * 0x4000;
    for (const [index, value] of [0x100000000 + offset, memory, offset, used].entries())
      file.writeBigUInt64LE(BigInt(value), at + 24 + index * 8);
    file.writeUInt32LE(sections, at + 64);
  };
  segment(32, 152, '__TEXT', 0, textSize, 1);
  file.write('__text', 32 + 72);
  file.writeUInt32LE(32 + commandsSize + room, 32 + 72 + 48);
  segment(32 + 152, 72, '__LINKEDIT', textSize, linkEditSize, 0);
  return file;
}

test('an independent reader finds every page of a signed executable as it was signed', { skip }, () => {
  for (const linkEditSize of [16, 5001, 0x4000, 0x7ff1]) {
    const signed = signAdHoc(machO({ linkEditSize }), 'andromeda');
    const pages = Math.ceil((0x4000 + Math.ceil(linkEditSize / 16) * 16) / 4096);
    assert.equal(verified(signed), `0 andromeda: ${pages} pages of 4096 bytes, all as signed`);
    const { said, found } = signedPages(signed);
    assert.deepEqual(said, found);
  }
});

test('it finds what was changed afterwards, in any page and in the signature', { skip }, () => {
  const signed = signAdHoc(machO(), 'andromeda');
  const changed = (at: number) => {
    const copy = Buffer.from(signed);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return verified(copy);
  };
  assert.equal(changed(0x1000), '1 page 1 differs');
  assert.equal(changed(0x4000 + 5000), '1 page 5 differs');
  assert.equal(changed(signed.length - 40), '1 page 5 differs');
  assert.match(verified(Buffer.concat([signed, Buffer.alloc(1)])), /^1 the signature is not the end/);
  assert.match(verified(machO()), /^1 no signature/);
});

test('signing again replaces the signature, and changes nothing else', { skip }, () => {
  const once = signAdHoc(machO(), 'andromeda');
  assert.deepEqual(signAdHoc(once, 'andromeda'), once);
  const other = signAdHoc(once, 'another-name');
  assert.equal(verified(other), '0 another-name: 6 pages of 4096 bytes, all as signed');
  assert.deepEqual(signAdHoc(other, 'andromeda'), once);
});

test('what cannot be signed is refused in words', () => {
  assert.throws(() => signAdHoc(Buffer.from('\x7fELF'.padEnd(64)), 'a'), /not a 64-bit Mach-O executable/);
  assert.throws(() => signAdHoc(machO({ room: 8 }), 'a'), /no room for one more command/);
  assert.throws(() => signAdHoc(Buffer.concat([machO(), Buffer.alloc(1)]), 'a'), /other segments/);
});

/** A small Windows executable with bytes in the place of a certificate. */
function windows(certificate: number): Buffer {
  const file = Buffer.alloc(1024 + certificate, 'andromeda');
  file.fill(0, 0, 512);
  file.write('MZ');
  file.writeUInt32LE(128, 60);
  file.write('PE\0\0', 128, 'latin1');
  file.writeUInt16LE(0x20b, 128 + 24);
  if (certificate > 0) {
    file.writeUInt32LE(1024, 128 + 24 + 112 + 32);
    file.writeUInt32LE(certificate, 128 + 24 + 112 + 36);
  }
  return file;
}

test('a Windows executable without its signature is the file that was signed, with its checksum', () => {
  const plain = withChecksum(windows(0));
  assert.deepEqual(withoutSignature(windows(264)), plain);
  assert.deepEqual(withoutSignature(plain), plain);
  assert.throws(() => withoutSignature(Buffer.concat([windows(264), Buffer.alloc(8)])), /not at the end/);
  assert.throws(() => withoutSignature(machO()), /not a 64-bit Windows executable/);
});

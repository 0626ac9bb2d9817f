/** Packages: archives, Debian’s, and their signatures. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDeb } from '../../scripts/packages/deb.ts';
import { requireIntegrity } from '../../scripts/packages/fetched.ts';
import { signAdHoc, signedPages } from '../../scripts/packages/mach-o.ts';
import { partsAskedFor, serversFor } from '../../scripts/packages/parts.ts';
import { withChecksum, withoutSignature } from '../../scripts/packages/pe.ts';
import { makeRpm } from '../../scripts/packages/rpm.ts';
import { billOfServer } from '../../scripts/packages/sbom.ts';
import { namespace, signFile } from '../../scripts/packages/sign.ts';
import { type TarEntry, writeTar } from '../../scripts/packages/tar.ts';
import { firstConfig } from '../../src/service/host/unit/service-unit.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('the package has the program, the unit, the account and a configuration that stays as it is left', () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  writeFileSync(at('program'), '#!/bin/sh\n');
  writeFileSync(at('sbom'), '{}\n');
  writeFileSync(at('notices'), 'Terms\n');
  const make = (name: string) =>
    makeDeb({
      work: at(`work-${name}`),
      program: at('program'),
      architecture: 'arm64',
      version: '1.2.3',
      description: 'Access',
      sbom: at('sbom'),
      notices: at('notices'),
      seconds: 1_700_000_000,
      out: at(name),
    });
  make('one.deb');
  make('two.deb');
  assert.ok(readFileSync(at('one.deb')).equals(readFileSync(at('two.deb'))));
  const deb = (...args: string[]) =>
    execFileSync('dpkg-deb', args, { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } });
  const files = deb('--contents', at('one.deb'))
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/ +\d+ 2023-11-14 22:13 /, ' '));
  assert.deepEqual(
    files.filter((line) => !line.startsWith('d')),
    [
      '-rw-r----- root/root ./etc/andromeda/andromeda.yaml',
      '-rwxr-xr-x root/root ./usr/bin/andromeda',
      '-rw-r--r-- root/root ./usr/lib/systemd/system/andromeda-gateway.socket',
      '-rw-r--r-- root/root ./usr/lib/systemd/system/andromeda-gateway@.service',
      '-rw-r--r-- root/root ./usr/lib/systemd/system/andromeda.service',
      '-rw-r--r-- root/root ./usr/lib/sysusers.d/andromeda.conf',
      '-rw-r--r-- root/root ./usr/share/doc/andromeda/copyright',
      '-rw-r--r-- root/root ./usr/share/doc/andromeda/sbom.cdx.json',
    ],
  );
  assert.ok(files.every((line) => !line.startsWith('d') || line.startsWith('drwxr-xr-x root/root ')));
  assert.equal(deb('--info', at('one.deb'), 'conffiles'), '/etc/andromeda/andromeda.yaml\n');
  assert.match(deb('--info', at('one.deb'), 'control'), /^Version: 1\.2\.3\nArchitecture: arm64$/m);
  deb('--extract', at('one.deb'), at('root'));
  assert.equal(readFileSync(at('root/usr/share/doc/andromeda/copyright'), 'utf8'), 'Terms\n');
  assert.equal(readFileSync(at('root/etc/andromeda/andromeda.yaml'), 'utf8'), firstConfig);
  const unit = readFileSync(at('root/usr/lib/systemd/system/andromeda.service'), 'utf8');
  assert.match(
    unit,
    /^# Of the package andromeda\. Yours to change by a drop-in: systemctl edit andromeda$/m,
  );
  assert.match(unit, /^ExecStart=\/usr\/bin\/andromeda serve --config \/etc\/andromeda\/andromeda\.yaml$/m);
  for (const script of ['postinst', 'prerm', 'postrm'])
    execFileSync('sh', ['-n'], { input: deb('--info', at('one.deb'), script) });
});

const rpmbuild = '/usr/bin/rpmbuild';
const noRpm = existsSync(rpmbuild) ? false : `${rpmbuild} is not installed`;

test('the RPM has the same files and scripts, and the same bytes each time', { skip: noRpm }, () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  for (const name of ['program', 'sbom', 'notices']) writeFileSync(at(name), `${name}\n`);
  const make = (name: string) =>
    makeRpm({
      work: at(`work-${name}`),
      program: at('program'),
      architecture: 'arm64',
      version: '1.2.3-rc.1',
      description: 'Access',
      sbom: at('sbom'),
      notices: at('notices'),
      seconds: 1_700_000_000,
      out: at(name),
    });
  make('one.rpm');
  make('two.rpm');
  assert.ok(readFileSync(at('one.rpm')).equals(readFileSync(at('two.rpm'))));
  const rpm = (...args: string[]) =>
    execFileSync('rpm', ['--query', '--package', at('one.rpm'), ...args], { encoding: 'utf8' });
  const facts = '%{VERSION} %{ARCH} %{LICENSE} %{BUILDTIME} %{BUILDHOST}';
  assert.equal(rpm('--queryformat', facts), '1.2.3~rc.1 aarch64 Apache-2.0 1700000000 localhost');
  const each = '[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEMTIMES} %{FILEFLAGS:fflags} %{FILENAMES}\n]';
  assert.deepEqual(rpm('--queryformat', each).trimEnd().split('\n'), [
    'drwxr-xr-x root 1700000000  /etc/andromeda',
    '-rw-r----- root 1700000000 cn /etc/andromeda/andromeda.yaml',
    '-rwxr-xr-x root 1700000000  /usr/bin/andromeda',
    '-rw-r--r-- root 1700000000  /usr/lib/systemd/system/andromeda-gateway.socket',
    '-rw-r--r-- root 1700000000  /usr/lib/systemd/system/andromeda-gateway@.service',
    '-rw-r--r-- root 1700000000  /usr/lib/systemd/system/andromeda.service',
    '-rw-r--r-- root 1700000000  /usr/lib/sysusers.d/andromeda.conf',
    'drwxr-xr-x root 1700000000  /usr/share/doc/andromeda',
    '-rw-r--r-- root 1700000000 d /usr/share/doc/andromeda/copyright',
    '-rw-r--r-- root 1700000000 d /usr/share/doc/andromeda/sbom.cdx.json',
  ]);
  for (const script of ['POSTIN', 'PREUN', 'POSTUN'])
    execFileSync('sh', ['-n'], { input: rpm('--queryformat', `%{${script}}`) });
  // As rpm runs it for the first version, and for a later one.
  const words = (left: string) =>
    execFileSync('sh', ['-s', left], {
      input: `${rpm('--queryformat', '%{PREUN}').split('\n')[0]}\necho $1`,
      encoding: 'utf8',
    });
  assert.deepEqual([words('0'), words('1')], ['remove\n', 'upgrade\n']);
});

test('tar reads an archive, whose bytes follow from its content alone', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  writeFileSync(at('large'), Buffer.alloc(3_000_001, 'andromeda'), { mode: 0o600 });
  const entries: TarEntry[] = [
    { name: 'folder/', mode: 0o755 },
    { name: 'folder/text', mode: 0o644, content: Buffer.from('text\n') },
    { name: 'large', mode: 0o755, content: { path: at('large') } },
  ];
  for (const gzip of [false, true]) {
    await writeTar(at('one'), entries, { seconds: 1_700_000_000, gzip });
    utimesSync(at('large'), 1, 1);
    await writeTar(at('two'), entries, { seconds: 1_700_000_000, gzip });
    assert.ok(readFileSync(at('one')).equals(readFileSync(at('two'))));
  }
  const env = { ...process.env, TZ: 'UTC' };
  const listed = execFileSync('tar', ['tvf', at('one')], { encoding: 'utf8', env });
  assert.deepEqual(
    listed
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ +/g, ' ')),
    [
      'drwxr-xr-x 0/0 0 2023-11-14 22:13 folder/',
      '-rw-r--r-- 0/0 5 2023-11-14 22:13 folder/text',
      '-rwxr-xr-x 0/0 3000001 2023-11-14 22:13 large',
    ],
  );
  execFileSync('tar', ['xf', at('one'), 'folder'], { cwd: directory.path });
  assert.equal(readFileSync(at('folder/text'), 'utf8'), 'text\n');
  const long = { name: 'x'.repeat(101), mode: 0o644, content: Buffer.alloc(0) };
  await assert.rejects(writeTar(at('three'), [long], { seconds: 0 }), /too long a name/);
});

test('a fetched file that is not the one that was pinned is refused', () => {
  const content = Buffer.from('content');
  const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  requireIntegrity('file', content, integrity);
  assert.throws(
    () => requireIntegrity('file', Buffer.from('other'), integrity),
    /not the file that was pinned/,
  );
});

const root = join(import.meta.dirname, '../..');

test('ssh-keygen takes the signature of the list, and of no other', () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  for (const key of ['key', 'other'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  const list = '00  file\n';
  writeFileSync(at('SHA256SUMS'), list);
  const signature = signFile(at('SHA256SUMS'), at('key'));
  const first = readFileSync(signature);
  assert.ok(readFileSync(signFile(at('SHA256SUMS'), at('key'))).equals(first), 'the same bytes again');
  const accepts = (text: string, key: string, purpose = namespace) => {
    writeFileSync(at('signers'), `releases@example.org ${readFileSync(at(`${key}.pub`), 'utf8')}`);
    const args = ['-Y', 'verify', '-f', at('signers'), '-I', 'releases@example.org', '-n', purpose];
    return spawnSync('ssh-keygen', [...args, '-s', signature], { input: text }).status === 0;
  };
  assert.ok(accepts(list, 'key'));
  assert.ok(!accepts(`${list} `, 'key'));
  assert.ok(!accepts(list, 'other'));
  assert.ok(!accepts(list, 'key', 'file'));
});

test('a release consists of the parts that were asked for, and of the servers that they are made of', () => {
  assert.deepEqual(partsAskedFor('deb,clients'), ['clients', 'deb']);
  assert.deepEqual(serversFor(['clients']), []);
  assert.deepEqual(serversFor(['deb']), [process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64']);
  assert.deepEqual(serversFor(['linux-arm64', 'image']), ['linux-arm64']);
  assert.throws(() => partsAskedFor('snap'), /There is no part snap; there are linux-x64, /);
});

test('what a server is made of is named with the addon of its own platform', async () => {
  const names = async (platform: string, debs: string[] = []) => {
    const { components } = JSON.parse(await billOfServer(root, platform, debs));
    return components.map(({ name }: { name: string }) => name) as string[];
  };
  const arm64 = await names('linux-arm64', ['libc6 2.36-9']);
  assert.ok(arm64.includes('@napi-rs/keyring-linux-arm64-gnu') && arm64.includes('better-sqlite3'));
  assert.ok(!arm64.includes('@napi-rs/keyring-linux-x64-gnu') && !arm64.includes('esbuild'));
  assert.deepEqual(arm64.slice(-2), ['node', 'libc6']);
  assert.ok((await names('linux-x64')).includes('@napi-rs/keyring-linux-x64-gnu'));
});

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

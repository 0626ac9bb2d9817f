/** The Debian package, of a program that does nothing: what is in it, and that its bytes follow from that alone. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDeb } from '../../scripts/packages/deb.ts';
import { firstConfig } from '../../src/service/host/unit/service-unit.ts';
import { temporaryDirectory } from '../support/directory.ts';

test('the package has the program, the unit, the account and a configuration that stays as it is left', () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  writeFileSync(at('program'), '#!/bin/sh\n');
  writeFileSync(at('sbom'), '{}\n');
  writeFileSync(at('licence'), 'Terms\n');
  const make = (name: string) =>
    makeDeb({
      work: at(`work-${name}`),
      program: at('program'),
      architecture: 'arm64',
      version: '1.2.3',
      description: 'Access',
      sbom: at('sbom'),
      licence: at('licence'),
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

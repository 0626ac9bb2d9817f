/**
 * The RPM of dist/release under a real systemd (booted.ts), by Debian's rpm: installed, served, upgraded and removed. Part of
 * `npm run release:test`.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeRpm } from '../../../scripts/packages/rpm.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { runBooted } from './booted.ts';
import { released } from './released.ts';

/** Each step writes one line, `NAME: RESULT`. Debian's packages are none that rpm knows of. */
const script = `
change() { rpm --nodeps --force-debian "$@" > /campaign/said; }
config() { stat -c '%U:%G %a' /etc/andromeda/andromeda.yaml; }
change --install /packages/one.rpm; echo "installed: $? $(show ActiveState) $(show UnitFileState)"
echo "account: $(getent passwd andromeda | cut -d: -f6,7) $(config) $(stat -c '%U:%G %a' /var/lib/andromeda)"
systemctl enable --now andromeda 2>/dev/null; echo "started: $? $(ready)"
before=$(show MainPID)
change --upgrade /packages/two.rpm
until_ '[ $before != $(show MainPID) ] && [ $(ready) = 200 ]'; echo "upgraded: $(rpm --query andromeda) $(config)"
change --erase andromeda; echo "removed: $? $(show ActiveState) $(gateway)$(test -e /usr/bin/andromeda || echo no program) $(test -e /var/lib/andromeda/andromeda.db && echo database)"
`;

test('the RPM installs, serves, upgrades, and its removal leaves the database', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  mkdirSync(at('packages'));
  copyFileSync(released(/\.x86_64\.rpm$/), at('packages/one.rpm'));
  // The same under a later version.
  makeRpm({
    work: at('work'),
    program: released(/-linux-x64$/),
    architecture: 'amd64',
    version: '99.0.0',
    description: 'Access',
    sbom: released(/-linux-x64\.cdx\.json$/),
    notices: released(/^LICENSE$/),
    seconds: 1_700_000_000,
    out: at('packages/two.rpm'),
  });
  const { read, all } = await runBooted(directory.path, at('packages'), script);
  assert.deepEqual(
    read('output').trimEnd().split('\n'),
    [
      'installed: 0 inactive disabled',
      'account: /var/lib/andromeda:/usr/sbin/nologin root:andromeda 640 andromeda:andromeda 711',
      'started: 0 200',
      'upgraded: andromeda-99.0.0-1.x86_64 root:andromeda 640',
      'removed: 0 inactive no program database',
    ],
    all(),
  );
});

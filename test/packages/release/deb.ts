/**
 * The Debian package of dist/release under a real systemd (booted.ts): installed, configured, served, upgraded, removed and
 * purged. Part of `npm run release:test`.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../support/directory.ts';
import { runBooted } from './booted.ts';
import { released } from './released.ts';

/** Each step writes one line, \`NAME: RESULT\`. */
const script = `
export DEBIAN_FRONTEND=noninteractive
dpkg --install /packages/one.deb > /campaign/install; echo "installed: $? $(show ActiveState) $(show UnitFileState)"
echo "account: $(getent passwd andromeda | cut -d: -f6,7) $(stat -c '%U:%G %a' /etc/andromeda/andromeda.yaml) $(stat -c '%U:%G %a' /var/lib/andromeda)"
systemctl enable --now andromeda 2>/dev/null; echo "started: $? $(ready)"
echo '# ours' >> /etc/andromeda/andromeda.yaml; before=$(show MainPID); held=$(gateway)
dpkg --install /packages/two.deb > /campaign/upgrade
until_ '[ -n "$(gateway)" ] && [ "$held" != "$(gateway)" ] && [ $(ready) = 200 ]'
echo "upgraded: $(dpkg-query -f '\${Version}' -W andromeda) $([ $before != $(show MainPID) ] && echo another process) $(tail -n 1 /etc/andromeda/andromeda.yaml)"
dpkg --remove andromeda > /dev/null 2>&1; echo "removed: $? $(show ActiveState) $(gateway)$(test -e /run/andromeda-gateway.sock || echo no socket) $(test -e /usr/bin/andromeda || echo no program) $(test -e /etc/andromeda/andromeda.yaml && echo configuration)"
dpkg --purge andromeda > /dev/null 2> /campaign/purge; echo "purged: $? $(test -e /etc/andromeda || echo no configuration) $(test -e /var/lib/andromeda/andromeda.db && echo database) $(ls -d /var/cache/andromeda* 2> /dev/null || echo no cache)"
`;

test('the package installs, serves, upgrades, and a purge leaves the database', async () => {
  using directory = temporaryDirectory();
  const packages = join(directory.path, 'packages');
  mkdirSync(packages);
  const deb = released(/_amd64\.deb$/);
  execFileSync('cp', [deb, join(packages, 'one.deb')]);
  // The same under a later version.
  const again = join(directory.path, 'again');
  execFileSync('dpkg-deb', ['--raw-extract', deb, again]);
  const control = join(again, 'DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: (.+)$/m, 'Version: $1.1'));
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z1', '-b', again, join(packages, 'two.deb')]);
  const { read, all } = await runBooted(directory.path, packages, script);
  const output = read('output');
  assert.deepEqual(
    output.trimEnd().split('\n'),
    [
      'installed: 0 inactive disabled',
      'account: /var/lib/andromeda:/usr/sbin/nologin root:andromeda 640 andromeda:andromeda 711',
      'started: 0 200',
      `upgraded: ${JSON.parse(readFileSync('package.json', 'utf8')).version}.1 another process # ours`,
      'removed: 0 inactive no socket no program configuration',
      'purged: 0 no configuration database no cache',
    ],
    all(),
  );
  assert.match(read('install'), /it is installed, and does not run yet/);
  assert.match(read('purge'), /\/var\/lib\/andromeda is still there; to remove it for good: rm -r/);
});

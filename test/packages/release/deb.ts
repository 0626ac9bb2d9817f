/**
 * The Debian package of dist/release under a real systemd, in a container of this machine's own programs whose changes are in
 * memory: installed, configured, served, upgraded, removed and purged. Part of `npm run release:test`.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../support/directory.ts';
import { heard } from '../../support/heard.ts';
import { released } from './released.ts';

const unit = `[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash /campaign/run.sh
StandardOutput=file:/campaign/output
StandardError=file:/campaign/errors
TimeoutStartSec=280
`;

/** Each step writes one line, \`NAME: RESULT\`. */
const script = `
trap 'kill -s SIGRTMIN+4 1' EXIT
show() { systemctl show -P "$1" andromeda; }
ready() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/readyz; }
until_() { for i in $(seq 300); do if eval "$1"; then return 0; fi; sleep 0.2; done; return 1; }
gateway() { pgrep -u andromeda-gateway -f 'andromeda gateway' | sort | tr '\\n' ' '; }
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
  const campaign = join(directory.path, 'campaign');
  const packages = join(directory.path, 'packages');
  mkdirSync(campaign);
  mkdirSync(packages);
  const deb = released(/_amd64\.deb$/);
  execFileSync('cp', [deb, join(packages, 'one.deb')]);
  // The same under a later version.
  const again = join(directory.path, 'again');
  execFileSync('dpkg-deb', ['--raw-extract', deb, again]);
  const control = join(again, 'DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: (.+)$/m, 'Version: $1.1'));
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z1', '-b', again, join(packages, 'two.deb')]);
  writeFileSync(join(campaign, 'run.sh'), script);
  writeFileSync(join(campaign, 'campaign.service'), unit);
  // systemd-nspawn takes no / for it, but another place where the same is.
  const place = join(directory.path, 'machine');
  mkdirSync(place);
  const machine = spawn(
    'unshare',
    [
      ...['--mount', 'sh', '-ec', 'mount --bind / "$0"; exec systemd-nspawn "$@"', place],
      ...['--register=no', '--keep-unit', '--private-network', '--quiet', `--directory=${place}`],
      '--volatile=overlay',
      `--bind=${campaign}:/campaign`,
      `--bind-ro=${packages}:/packages`,
      `--bind-ro=${campaign}/campaign.service:/etc/systemd/system/campaign.service`,
      ...['--boot', 'systemd.firstboot=no', 'systemd.unit=campaign.service'],
      'systemd.mask=systemd-networkd-wait-online.service',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const shown = heard(machine.stdout, machine.stderr);
  const limit = setTimeout(() => machine.kill('SIGKILL'), 280_000);
  await new Promise((done) => machine.once('close', done));
  clearTimeout(limit);
  const read = (name: string) =>
    existsSync(join(campaign, name)) ? readFileSync(join(campaign, name), 'utf8') : `no ${name}`;
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
    `${output}\n${read('errors')}\n${shown().slice(-3000)}`,
  );
  assert.match(read('install'), /it is installed, and does not run yet/);
  assert.match(read('purge'), /\/var\/lib\/andromeda is still there; to remove it for good: rm -r/);
});

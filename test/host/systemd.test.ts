/**
 * The unit under a real systemd, in a container of this machine's own programs whose /etc and /var are empty: installed, started,
 * killed, hung, reloaded, misconfigured, without its port, on a full disk, without its database or with a damaged one, restored from
 * a backup that it made by itself, and stopped.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingForBundle } from '../../scripts/build/bundle.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { placeExecutable } from '../support/executable.ts';

const root = join(import.meta.dirname, '../..');
const nspawn = '/usr/bin/systemd-nspawn';
const container = [
  '--register=no',
  '--keep-unit',
  '--private-network',
  '--quiet',
  '--directory=/',
  '--volatile=yes',
];
const missing = missingForBundle(root);

function reasonToSkip(): string | false {
  if (missing.length > 0) return `the build needs ${missing.join(', ')}`;
  if (!existsSync(nspawn)) return `${nspawn} is not installed`;
  if (!existsSync('/usr/bin/python3')) return 'python3 is not installed';
  const { status } = spawnSync(nspawn, [...container, '/bin/true'], { timeout: 30_000, stdio: 'ignore' });
  return status !== 0 && 'systemd-nspawn does not work here';
}

/** Runs once systemd is up, and switches the machine off. */
const unit = `[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash /campaign/run.sh
StandardOutput=file:/campaign/output
StandardError=file:/campaign/errors
TimeoutStartSec=400
`;

/** Each step writes one line, \`NAME: RESULT\`, which the test reads. */
const script = `
config=/etc/andromeda/andromeda.yaml
show() { systemctl show -P "$1" andromeda; }
ready() { curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/readyz; }
until_() { for i in $(seq 300); do if eval "$1"; then return 0; fi; sleep 0.2; done; return 1; }
processes() { cat /sys/fs/cgroup/system.slice/andromeda.service/cgroup.procs 2>/dev/null | wc -l; }
said() { journalctl -u andromeda -o cat -p err | grep -c "$1"; }
# There is no PAM here that runuser would do with.
as_service() { HOME=/tmp setpriv --reuid=andromeda --regid=andromeda --init-groups /opt/andromeda "$@" --config $config; }
gateway() { pgrep -u andromeda -f 'andromeda gateway' | sort | tr '\\n' ' '; }
trap 'kill -s SIGRTMIN+4 1' EXIT

mkdir -p /opt; cp /program/andromeda /opt/andromeda
/opt/andromeda service install > /campaign/install || exit
mkdir -p /run/systemd/system/andromeda.service.d
printf '[Service]\\nWatchdogSec=9\\nRestartSec=1\\n' > /run/systemd/system/andromeda.service.d/test.conf
systemctl daemon-reload
# A disk of its own, which is soon full.
mount -t tmpfs -o size=160m,mode=711 tmpfs /var/lib/andromeda; chown andromeda: /var/lib/andromeda

systemctl start andromeda; echo "started: $? $(show ActiveState) $(ready)"
systemctl show -P ExecStartPre andromeda | grep -c 'status=0' | sed 's/^/checked: /'

first=$(show MainPID); held=$(gateway)
kill -9 $first; until_ '[ $(show MainPID) != $first ] && [ $(show MainPID) != 0 ] && [ $(show ActiveState) = active ]'
echo "killed: $(show NRestarts) $(ready) $([ "$held" = "$(gateway)" ] && echo same gateway)"

systemctl reset-failed andromeda; before=$(show MainPID)
kill -USR1 $before; sleep 1; echo "SIGUSR1: $(ready) $(journalctl -u andromeda -o cat | grep -c Debugger)"
systemctl reload andromeda; until_ 'journalctl -u andromeda -o cat | grep -q serve.reloading' ; sleep 1; until_ '[ $(ready) = 200 ]'
echo "reloaded: $([ $before = $(show MainPID) ] && echo same process) $([ "$held" = "$(gateway)" ] && echo same gateway)"

cp /program/andromeda /opt/next; before=$(show MainPID)
/opt/andromeda service upgrade /opt/next > /campaign/upgrade
echo "upgraded: $? $(ready) $([ $before = $(show MainPID) ] && echo same process) $([ -n "$(gateway)" ] && [ "$held" != "$(gateway)" ] && echo new gateway)"
printf '#!/bin/sh\\ncase $1 in version) echo andromeda 9.9.9;; check) ;; *) exit 1;; esac\\n' > /opt/broken
/opt/andromeda service upgrade /opt/broken 2> /campaign/broken
echo "put back: $? $(ready) $([ -n "$(gateway)" ] && echo gateway)"
printf '#!/bin/sh\\ncase $1 in version) echo andromeda 9.9.9;; check) ;; *) exec sleep 900;; esac\\n' > /opt/hanging
systemctl reset-failed andromeda; /opt/andromeda service upgrade /opt/hanging 2> /campaign/hanging
until_ '[ $(ready) = 200 ]'; echo "hanging: $? $(ready) $(grep -c 'did not serve' /campaign/hanging)"
/opt/andromeda service upgrade /bin/false 2>> /campaign/broken; echo "refused at once: $? $(ready)"
mv /opt/andromeda /opt/good; head -c 20000000 /opt/good > /opt/andromeda; chmod 755 /opt/andromeda
systemctl reload andromeda; until_ 'journalctl -u andromeda -o cat | grep -q "does not run"'; echo "damaged: $(ready)"
mv /opt/good /opt/andromeda

systemctl reset-failed andromeda; before=$(show MainPID)
kill -STOP $before; until_ '[ $(show MainPID) != $before ] && [ $(show MainPID) != 0 ] && [ $(show ActiveState) = active ]'
echo "hung: $(ready) $(journalctl -u andromeda -o cat | grep -c 'Watchdog timeout')"

cp $config /tmp/good; echo 'sink: 1' >> $config
systemctl reload andromeda; until_ 'journalctl -u andromeda -o cat | grep -q "sink is not"'; echo "refused: $(ready)"
systemctl restart andromeda 2>/dev/null; echo "misconfigured: $? $(show ActiveState) $(show ExecMainStatus)"
sleep 4; echo "left alone: $(show ActiveState) $(show NRestarts)"
journalctl -u andromeda -o cat -p err | grep -c 'sink is not a setting' | sed 's/^/in words: /'
cat /tmp/good > $config

python3 -m http.server 8081 --bind 127.0.0.1 > /dev/null 2>&1 & other=$!
until_ '[ $(curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8081/) = 200 ]'
systemctl restart andromeda 2>/dev/null; echo "port taken: $? $(show ActiveState) $(show ExecMainStatus)"
kill $other; wait $other 2>/dev/null

install -d -m 0700 -o andromeda -g andromeda /var/backups/andromeda
echo 'backup: { every: 24h, keep: 14, to: /var/backups/andromeda }' >> $config
/opt/andromeda service install > /dev/null
systemctl start andromeda; echo "again: $? $(ready)"
until_ 'journalctl -u andromeda -o cat | grep -q backup.made'; echo "kept: $(ls /var/backups/andromeda | wc -l)"
head -c 200000000 /dev/zero > /var/lib/andromeda/filler 2>/dev/null; until_ '[ $(ready) = 503 ]'
echo "full: $(curl -s http://127.0.0.1:8080/readyz | grep -o 'the disk is full') $(as_service backup 2>&1 | grep -o 'Make room')"
rm /var/lib/andromeda/filler; until_ '[ $(ready) = 200 ]'; echo "room again: $(ready)"

systemctl stop andromeda; mv /var/lib/andromeda/andromeda.db* /tmp/
systemctl start andromeda 2>/dev/null; echo "no database: $? $(show ExecMainStatus) $(said 'is missing, and there are keys beside it')"
as_service restore newest > /dev/null 2>&1; echo "restored: $?"
dd if=/dev/urandom of=/var/lib/andromeda/andromeda.db bs=4096 seek=20 count=40 conv=notrunc status=none
echo "damaged database: $(/opt/andromeda doctor --quiet --config $config | grep -cE 'damaged(. Restore a backup|, and a backup has to be restored)')"
as_service backup /tmp/copy 2>&1 | grep -o 'is damaged, so no backup was written' | sed 's/^/and its backup: /'
as_service restore newest > /dev/null 2>&1; /opt/andromeda restore --drill --config $config > /campaign/drill; echo "drill: $?"
systemctl start andromeda; echo "restored again: $? $(ready)"
/opt/andromeda check --quiet --config $config; echo "check: $?"
/opt/andromeda doctor --config $config > /campaign/doctor; echo "doctor: $?"
systemctl stop andromeda; echo "stopped: $? $(show ActiveState) $(processes) $(gateway)"

# A service that has to be killed leaves none either.
mkdir -p /run/systemd/system/andromeda.service.d; printf '[Service]\\nTimeoutStopSec=2\\n' > /run/systemd/system/andromeda.service.d/stop.conf
systemctl daemon-reload; systemctl start andromeda; kill -STOP $(show MainPID)
systemctl stop andromeda; until_ '[ -z "$(gateway)" ]'; echo "stopped by force: $(gateway)$(processes)"
journalctl -u andromeda -o cat --no-pager > /campaign/journal
`;

test('under systemd: ready, alive, reloaded, restarted where that helps and left alone where it does not', {
  skip: reasonToSkip(),
  timeout: 900_000,
}, async () => {
  using directory = temporaryDirectory();
  const program = join(directory.path, 'andromeda');
  await placeExecutable(program);
  const campaign = join(directory.path, 'campaign');
  mkdirSync(campaign);
  writeFileSync(join(campaign, 'run.sh'), script);
  writeFileSync(join(campaign, 'campaign.service'), unit);
  const binds = [
    `--bind=${campaign}:/campaign`,
    `--bind-ro=${program}:/program/andromeda`,
    `--bind-ro=${campaign}/campaign.service:/etc/systemd/system/campaign.service`,
  ];
  const mask = 'systemd.mask=systemd-networkd-wait-online.service';
  const boot = ['--boot', 'systemd.firstboot=no', 'systemd.unit=campaign.service', mask];
  const machine = spawn(nspawn, [...container, ...binds, ...boot], { stdio: ['ignore', 'pipe', 'pipe'] });
  let shown = '';
  for (const stream of [machine.stdout, machine.stderr])
    stream.setEncoding('utf8').on('data', (part) => {
      shown += part;
    });
  const limit = setTimeout(() => machine.kill('SIGKILL'), 600_000);
  await new Promise((done) => machine.once('close', done));
  clearTimeout(limit);
  const read = (name: string) =>
    existsSync(join(campaign, name)) ? readFileSync(join(campaign, name), 'utf8') : `no ${name}`;
  const output = read('output');
  const context = `${output}\n${read('errors')}\n${read('journal')}\n${shown.slice(-2000)}`;
  assert.deepEqual(
    output.trimEnd().split('\n'),
    [
      'started: 0 active 200',
      'checked: 1',
      'killed: 1 200 same gateway',
      'SIGUSR1: 200 0',
      'reloaded: same process same gateway',
      'upgraded: 0 200 same process new gateway',
      'put back: 1 200 gateway',
      'hanging: 0 200 1',
      'refused at once: 1 200',
      'damaged: 200',
      'hung: 200 2',
      'refused: 200',
      'misconfigured: 1 failed 78',
      'left alone: failed 0',
      'in words: 2',
      'port taken: 1 failed 69',
      'again: 0 200',
      'kept: 1',
      'full: the disk is full Make room',
      'room again: 200',
      'no database: 1 78 1',
      'restored: 0',
      'damaged database: 1',
      'and its backup: is damaged, so no backup was written',
      'drill: 0',
      'restored again: 0 200',
      'check: 0',
      'doctor: 0',
      'stopped: 0 inactive 0 ',
      'stopped by force: 0',
    ],
    context,
  );
  assert.match(read('upgrade'), /^The service is .+ now; it was /);
  assert.match(
    read('broken'),
    /The new program did not serve\. \/opt\/andromeda is the one before again[\s\S]*`\/opt\/andromeda\.new version` does not answer/,
  );
  assert.match(read('doctor'), /^ok +audit trail/m);
});

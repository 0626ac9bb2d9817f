/** Under a real systemd: units of an adopted person who lingers end with their access, do not come back, and may again later. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountRows, formerRows, hostRows } from '../../src/sync/slurm/desired.ts';
import type { Host } from '../../src/sync/slurm/hosts.ts';
import { type Row, scriptOf } from '../../src/sync/slurm/script.ts';
import { noSystemd, runUnderSystemd } from '../support/systemd.ts';
import { clusterId, person } from './people.ts';

const bob = person('bob', 1003, { gid: 100, isAdopted: true });
const host: Host = { address: 'local', nodes: [], roles: new Set(['compute']) };
const settings = { login: [], controller: { host: '127.0.0.1' }, adopt: true };
const scope = { clusterId, organization: 'physics', settings };
const applying = (version: number, rows: readonly Row[]) =>
  Buffer.from(
    scriptOf([...hostRows(scope, host, 'apply'), ['version', version, version, 0], ...rows]),
  ).toString('base64');
const wanted = accountRows([bob], host);

const script = `
mkdir -p /etc/alternatives; ln -s "$(command -v mawk gawk | head -n 1)" /etc/alternatives/awk
mkdir -p /etc/pam.d /home /var/lib/systemd/linger
for name in other systemd-user; do
  printf '%s\\n' 'auth required pam_unix.so' 'account required pam_unix.so' 'session required pam_unix.so' 'session optional pam_systemd.so' > /etc/pam.d/$name
done
systemctl start dbus.socket systemd-logind
useradd -u 1003 -g 100 -m -p '*' bob
apply() { base64 -d | sh -s > /campaign/applied-$1 2>&1; echo "applied: $?"; }
unit='[Service]
ExecStart=/usr/bin/sleep 1000
Restart=always
[Install]
WantedBy=default.target'
mkdir -p /home/bob/.config/systemd/user/default.target.wants
printf '%s\\n' "$unit" > /home/bob/.config/systemd/user/mine.service
ln -s ../mine.service /home/bob/.config/systemd/user/default.target.wants; chown -R bob: /home/bob
loginctl enable-linger bob
until_ 'pgrep -u bob -x sleep > /dev/null'; echo "lingers: $(pgrep -c -u bob -x sleep)"
echo ${applying(1, wanted)} | apply adopted
echo "adopted: $(pgrep -c -u bob -x sleep)"
echo ${applying(2, formerRows([bob]))} | apply left
sleep 3; echo "left: $(pgrep -c -u bob)"
systemctl restart systemd-logind; sleep 2; echo "logind anew: $(pgrep -c -u bob)"
systemctl start user@1003; echo "started by hand: $([ $? = 0 ] || echo refused) $(pgrep -c -u bob)"
echo ${applying(3, wanted)} | apply back
systemctl start user@1003; until_ 'pgrep -u bob -x sleep > /dev/null'; echo "back: $(pgrep -c -u bob -x sleep)"
`;

test('units of an adopted person who left neither go on nor start', { skip: noSystemd() }, async () => {
  const { lines, context, read } = await runUnderSystemd(script);
  assert.deepEqual(
    lines,
    [
      'lingers: 1',
      'applied: 0',
      'adopted: 1',
      'applied: 0',
      'left: 0',
      'logind anew: 0',
      'started by hand: refused 0',
      'applied: 0',
      'back: 1',
    ],
    `${['adopted', 'left', 'back'].map((name) => read(`applied-${name}`)).join('\n')}\n${context}`,
  );
});

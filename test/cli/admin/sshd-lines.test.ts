/** The lines that an operator puts into the sshd of a login node: golden text, and what a real sshd makes of them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../support/directory.ts';
import { keygen } from '../../support/ssh-keys.ts';
import { says } from '../harness.ts';
import { signedIn } from '../small-api.ts';
import { alpha, gatewayRoute } from './operator-api.ts';

const routes = { ...gatewayRoute, 'GET /operator/clusters': { clusters: [alpha] } };

const golden = readFileSync(join(import.meta.dirname, 'sshd-lines.golden.txt'), 'utf8');

test('the public key and the sshd lines an operator needs are printed', async (t) => {
  const { run } = await signedIn(t, routes);
  await says(run(['admin', 'gateway', 'sshd', '--from', '10.0.0.1,fd00::/64']), 0, '', golden);
});

test('an address that is none is a usage error', async (t) => {
  const { run } = await signedIn(t, routes);
  for (const from of ['gateway.example', '10.0.0.1 *', '10.0.0.1\nPermitRootLogin yes', '']) {
    const { status, stdout } = await run(['admin', 'gateway', 'sshd', '--from', from]);
    assert.deepEqual([stdout, status === 0], ['', false], JSON.stringify(from));
  }
});

const managed = golden.replace(
  'Match Address',
  `Match User root Address 10.0.0.1,fd00::/64
    # Andromeda manages this machine from there, with a key of its own.
    AuthorizedKeysFile .ssh/authorized_keys
    AuthenticationMethods publickey
    PermitRootLogin prohibit-password

Match Address`,
);

test('with --manage, that account keeps its own keys', async (t) => {
  const { run } = await signedIn(t, routes);
  const args = ['admin', 'gateway', 'sshd', '--from', '10.0.0.1,fd00::/64', '--manage'];
  await says(run([...args, 'root']), 0, '', managed);
  for (const name of ['root Address *', '*', '', 'root\nMatch all']) {
    assert.deepEqual([(await run([...args, name])).status, name], [2, name]);
  }
});

test('where a cluster has direct logins, sshd asks for its list at each login', async (t) => {
  const direct = { until: '2027-01-31', people: [], keyless: [], services: [] };
  const clusters = { 'GET /operator/clusters': { clusters: [alpha, { ...alpha, direct }] } };
  const { run } = await signedIn(t, { ...routes, ...clusters });
  const { stdout } = await run(['admin', 'gateway', 'sshd', '--from', '10.0.0.1']);
  const others = stdout.slice(stdout.indexOf('Match User *'));
  assert.match(others, /^ {4}AuthorizedKeysFile none$/m);
  assert.match(others, /^ {4}AuthorizedKeysCommand \/bin\/sh \/etc\/ssh\/andromeda-direct\/keys %u %h /m);
});

const sshd = '/usr/sbin/sshd';
test('sshd takes them, for the gateway and no other address', {
  skip: !existsSync(sshd) && 'no sshd',
}, () => {
  using directory = temporaryDirectory();
  const hostKey = join(directory.path, 'host');
  writeFileSync(hostKey, keygen('-t', 'ed25519').privateKey, { mode: 0o600 });
  const file = join(directory.path, 'sshd_config');
  // What the site has for everyone opens no account either.
  const site =
    'AuthorizedKeysCommand /bin/echo %u\nAuthorizedKeysCommandUser root\nTrustedUserCAKeys /etc/ca.pub\n';
  writeFileSync(file, `HostKey ${hostKey}\n${site}${managed}PrintMotd no\n`);
  const settings = (address: string, user = 'nobody') => {
    const args = ['-T', '-f', file, '-C', `addr=${address},user=${user},host=x,laddr=10.0.0.2,lport=22`];
    const ran = spawnSync(sshd, args, { encoding: 'utf8' });
    assert.equal(ran.status, 0, ran.stderr);
    return ran.stdout.toLowerCase().split('\n');
  };
  const ours = [
    'authorizedkeysfile /etc/ssh/andromeda_gateway.pub',
    'authenticationmethods publickey',
    'permitrootlogin no',
    'allowtcpforwarding local',
    'allowagentforwarding no',
    'x11forwarding no',
    'permittunnel no',
    'maxsessions 512',
  ];
  const [gateway, other] = [settings('10.0.0.1'), settings('10.9.9.9')];
  for (const line of ours) assert.ok(gateway.includes(line), line);
  for (const line of [
    'authorizedkeyscommand none',
    'trustedusercakeys none',
    'authenticationmethods publickey',
  ])
    assert.ok(gateway.includes(line) && other.includes(line), line);
  assert.ok(settings('10.9.9.9', 'root').includes('authorizedkeyscommand /bin/echo %u'));
  assert.ok(gateway.includes('maxstartups 1000:30:2000'));
  assert.ok(gateway.includes('printmotd no') && other.includes('printmotd no'));
  assert.ok(other.includes('authorizedkeysfile none'), 'their own keys do not go round the gateway');
  for (const address of ['10.9.9.9', '10.0.0.1'])
    assert.ok(!settings(address, 'root').includes('authorizedkeysfile none'), address);
  const manager = settings('10.0.0.1', 'root');
  assert.ok(manager.includes('authorizedkeysfile .ssh/authorized_keys'));
  assert.ok(manager.includes('permitrootlogin without-password'));
  assert.ok(other.includes('allowtcpforwarding yes') && other.includes('maxsessions 10'));
});

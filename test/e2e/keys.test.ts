/** Keys of the gateway take one another's place under a running service, by one command on the host, with the real ssh. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { becomes, eventually, startTestApp } from '../support/app.ts';
import { runProgram } from '../support/program.ts';
import { sshPerson } from '../support/ssh-person.ts';

const day = 86_400_000;

test('the host key and the key towards login nodes give way to others, and people log in throughout', async () => {
  await using service = await startTestApp({ gateway: { processes: 1 } });
  const file = join(service.dataDir, 'andromeda.yaml');
  /** Again, as it says, where the disk of a busy machine takes too long. */
  const key = (...args: string[]) =>
    eventually(
      () => runProgram('admin', 'key', ...args, '--config', file),
      ({ err }) => !err.includes('takes no writes at the moment'),
    );
  async function does(...args: string[]): Promise<string> {
    const { status, out, err } = await key(...args);
    assert.equal(status, 0, err);
    return out;
  }
  using ada = await sshPerson(service, 'ada');
  const known = String(ada.options.at(-1)).replace('UserKnownHostsFile=', '');
  const knownKeys = () => readFileSync(known, 'utf8').trim().split('\n');
  const ready = () => eventually(ada.access, (body) => body['ready'] === true);
  const logIn = async () => {
    await ready();
    const learning = ['-o', 'UpdateHostKeys=yes'];
    const { status, out, err } = await ada.ssh([...learning, ada.target, 'sleep 0.3; echo in']);
    assert.deepEqual([status, out], [0, 'in\n'], err);
    return knownKeys().length;
  };
  assert.equal(await logIn(), 1);
  const gateway = async () => (await service.business('/operator/gateway', { as: 'root' })).body;
  const before = await gateway();

  const told = await does('new', 'host');
  assert.match(told, /^ {2}next +SHA256:\S+ +ssh-ed25519 \S+ +used from \S+ on$/m);
  assert.match(
    await does('new', 'client'),
    /Put its line beside the other one where login nodes keep the key/,
  );
  const again = await key('new', 'host');
  assert.equal(again.status, 1);
  assert.match(again.err, /There is another one beside it already, SHA256:\S+ The former goes at \S+Z\./);
  const next = await eventually(gateway, ({ other_host_keys: hosts, other_public_keys: keys }) => {
    return hosts.length === 1 && keys.length === 1;
  });
  assert.deepEqual([next.host_key, next.public_key], [before.host_key, before.public_key]);
  const [hostKey, clientKey] = [next.other_host_keys[0], next.other_public_keys[0]];
  assert.equal((await ready())['other_host_key'], hostKey);
  await becomes(logIn, 2);

  service.advance(16 * day);
  const later = await gateway();
  assert.deepEqual([later.host_key, later.public_key], [hostKey, clientKey]);
  assert.deepEqual(later.other_host_keys, [before.host_key]);
  await logIn();
  service.advance(15 * day);
  const alone = await gateway();
  assert.deepEqual([alone.host_key, alone.other_host_keys], [hostKey, []]);
  assert.deepEqual([alone.public_key, alone.other_public_keys], [clientKey, []]);
  await becomes(logIn, 1);
  assert.equal(knownKeys()[0]?.split(' ').slice(1, 3).join(' '), hostKey);

  const at = (name: string) => join(service.dataDir, 'data/keys', name);
  // Nothing is left of the former, where the keys are not in the database.
  if (existsSync(at('gateway_host_ed25519'))) {
    await becomes(() => existsSync(at('host.next')) || existsSync(at('client.next')), false);
    assert.equal(readFileSync(at('gateway_host_ed25519.pub'), 'utf8'), `${hostKey} andromeda\n`);
    assert.equal(statSync(at('gateway_host_ed25519')).mode & 0o777, 0o600);
  }

  // A stolen one holds no more within seconds.
  assert.match(await does('new', 'client', '--keep', '0'), /It holds alone, from now on/);
  const stolen = await eventually(gateway, ({ public_key }) => public_key !== clientKey);
  assert.deepEqual(stolen.other_public_keys, []);
  await logIn();

  // Each is in the audit trail.
  const { body } = await service.business('/operator/audit?operation=newKey', { as: 'root' });
  const said = (body.entries as { target: string; details: string }[]).map(({ target }) => target);
  assert.deepEqual(said, ['host', 'client', 'client']);
  assert.match(
    body.entries[0].details,
    /^SHA256:\S+ takes the place of SHA256:\S+, which holds for 30 more days$/,
  );

  // Of two commands at once, one is refused.
  const both = await Promise.all([key('new', 'audit'), key('new', 'audit')]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [0, 1]);
  const { out } = await key('list');
  assert.match(out, /^audit .*\n {2}in use .*\n {2}next .*\n(\n|$)/m);
});

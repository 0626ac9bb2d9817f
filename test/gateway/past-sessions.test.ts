/** What is kept of SSH sessions that are over, of revoked keys, and of how much went on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBreak } from '../../src/domain/audit/audit.ts';
import { listAuditEntries } from '../../src/store/audit/audit.ts';
import { deleteOld, forgetKeyAddresses } from '../../src/store/audit/retention.ts';
import { alpha, becomes, eventually, startTestApp, type TestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';

async function past(service: TestApp, as: string, query = '', path = '/operator/sessions/past') {
  const { status, body } = await service.business(`${path}${query}`, { as });
  assert.equal(status, 200, JSON.stringify(body));
  return body.sessions;
}

test('sessions that are over are found by person, cluster, key, address and time, and erased with their person', async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  const before = new Date().toISOString();
  assert.equal((await bob.ssh([bob.target, 'echo "hi, there"; exit 3'])).status, 3);
  assert.equal((await bob.ssh(['-tt', bob.target], 'exit\n')).status, 0);
  const [shell, command, ...more] = await eventually(
    () => past(service, 'root'),
    (list) => list.length === 2,
  );
  assert.deepEqual(more, []);
  assert.equal(shell.shells, 1);
  assert.deepEqual(command.commands, ['echo "hi, there"; exit 3']);
  assert.equal(command.channels, 1);
  assert.equal(command.username, 'bob');
  assert.equal(command.remote_address.split(':')[0], '127.0.0.1');
  assert.ok(command.bytes_down >= 'hi, there\n'.length);
  assert.ok(command.opened_at >= before && command.opened_at <= command.closed_at);
  // Of the key it is known when it was last used and, for as long as that is kept, from where.
  const keyOf = async (as: string) => (await service.business('/me/ssh-keys', { as })).body.keys.at(-1);
  const used = await keyOf('bob');
  assert.deepEqual([used.last_used_at, used.last_used_from], [shell.opened_at, shell.remote_address]);
  await forgetKeyAddresses(service.app.store, Date.parse(shell.opened_at));
  assert.deepEqual(await keyOf('bob'), used);
  await forgetKeyAddresses(service.app.store, Date.parse(shell.opened_at) + 1);
  const { last_used_from: _, ...rest } = used;
  assert.deepEqual(await keyOf('bob'), rest);
  // The trail has the same under the same number, and fits.
  const { store } = service.app;
  const entries = await listAuditEntries(store.read, {}, { after: 0, limit: 1000 });
  assert.equal(entries.find(({ seq }) => seq === command.seq)?.target, command.id);
  assert.equal(findBreak({ seq: 0, hash: '' }, entries), undefined);

  const count = async (query: string) => (await past(service, 'root', `?${query}`)).length;
  for (const [query, wanted] of [
    ['person=bob%40physics.example', 2],
    [`person=${bob.userId}&cluster=alpha`, 2],
    ['person=ada%40physics.example', 0],
    ['cluster=beta', 0],
    [`key=${bob.keyId}`, 2],
    [`key=${encodeURIComponent(command.fingerprint)}`, 2],
    ['key=SHA256%3Anone', 0],
    [`address=${encodeURIComponent(command.remote_address)}`, 2],
    ['address=203.0.113.9', 0],
    [`from=${before}`, 2],
    [`to=${before}`, 0],
    ['limit=1', 1],
    [`limit=1&after=${shell.seq}`, 1],
    [`after=${command.seq}`, 0],
  ] as const)
    assert.equal(await count(query), wanted, query);

  // Their own people see; others not, and operators only where they may read the trail.
  assert.equal((await past(service, 'bob', '', '/me/ssh-sessions/past')).length, 2);
  assert.equal((await past(service, 'ada', '', '/me/ssh-sessions/past')).length, 0);
  assert.equal((await service.business('/operator/sessions/past', { as: 'ada' })).status, 403);

  for (const [what, about] of [
    ['deactivate', 'left'],
    ['erase', 'asked for it'],
  ]) {
    const done = await service.write(`/operator/people/${bob.userId}/${what}`, {
      as: 'root',
      reason: `${about}`,
    });
    assert.equal(done.status, 200, JSON.stringify(done.body));
  }
  await becomes(async () => (await past(service, 'root')).length, 0);
});

test('each cluster says when it first lacked a revoked key; sessions go as retention says', async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  await bob.ssh([bob.target, 'true']);
  await becomes(async () => (await past(service, 'root')).length, 1);
  const path = `/me/ssh-keys/${bob.keyId}/clusters`;
  const drops = async () => (await service.business(path, { as: 'bob' })).body.clusters;
  assert.deepEqual(await drops(), []);
  const revoked = await service.write(`/me/ssh-keys/${bob.keyId}/revoke`, { as: 'bob' });
  const [one, ...others] = await eventually(drops, ([first]) => first?.dropped_at);
  assert.deepEqual(others, []);
  assert.equal(one.cluster_id, alpha);
  assert.equal(one.cluster_name, 'alpha');
  assert.ok(one.dropped_at > revoked.body.ssh_key.revoked_at);
  // It stays what it was, whatever the cluster reports later.
  service.advance(60_000);
  await becomes(async () => ((await bob.access())['observed_at'] as string) > one.dropped_at, true);
  assert.deepEqual(await drops(), [one]);
  assert.equal((await service.business(path, { as: 'ada' })).status, 404);

  const { store } = service.app;
  await deleteOld(store, 'ssh_sessions', Date.parse(one.dropped_at) - 86_400_000);
  assert.equal((await past(service, 'root')).length, 1);
  await deleteOld(store, 'ssh_sessions', Date.parse(one.dropped_at) + 86_400_000);
  assert.equal((await past(service, 'root')).length, 0);
});

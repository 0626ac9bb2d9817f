/** Records of SSH sessions: what the audit trail says of them, and what is kept of those that are over and of revoked keys. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findBreak } from '../../src/domain/audit/audit.ts';
import { createUses, type GatewayEvent } from '../../src/gateway/ssh/events.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startSessionRecords } from '../../src/service/compose/session-records.ts';
import { listAuditEntries } from '../../src/store/audit/audit.ts';
import { deleteOld, forgetKeyAddresses } from '../../src/store/audit/retention.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { alpha, becomes, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { freePorts } from '../support/ports.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { openTestStore, userId } from '../support/store.ts';
import { missing } from '../sync/login-node/helpers.ts';

interface Entry {
  operation: string;
  target: string;
  reason: string;
  result: string;
  details: string;
  source_address: string;
  actor_user_id: string;
  subject_user_id: string;
  cluster_id: string;
  organization_id: string;
}

async function entries(service: TestApp, query = ''): Promise<Entry[]> {
  const { body } = await service.business(`/operator/audit?limit=1000${query}`, { as: 'root' });
  return body.entries.filter(({ operation }: Entry) => operation.startsWith('ssh.'));
}

/** Answers one connection to the login node's own loopback, behind the back of the session that started it. */
const pong = `import os, socket # secret-input
server = socket.create_server(("127.0.0.1", 0))
print("secret-output", server.getsockname()[1], flush=True)
if os.fork() == 0:
  os.setsid()
  for fd in (0, 1, 2): os.close(fd)
  with server.accept()[0] as one: one.sendall(b"pong")
`;

test('session records: who, key, cluster, from where, start, end, why it ended, bytes, commands run as exec, forwards', {
  skip: missing('python3'),
}, async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  const ran = await bob.ssh([bob.target, 'python3; exit 3'], pong);
  assert.equal(ran.status, 3, ran.err);
  const port = /^secret-output (\d+)\n$/.exec(ran.out)?.[1];
  const forwarded = await bob.ssh(['-W', `localhost:${port}`, bob.target]);
  assert.equal(forwarded.out, 'pong', forwarded.err);

  const ofBob = () => entries(service, `&person=${bob.userId}`);
  const found = await eventually(ofBob, (all) => all.length === 4);
  assert.deepEqual(
    found.map(({ operation }) => operation),
    ['ssh.session.opened', 'ssh.session.closed', 'ssh.session.opened', 'ssh.session.closed'],
  );
  const [opened, closed, , other] = found;
  assert.ok(opened && closed && other);
  for (const entry of found) {
    assert.equal(entry.actor_user_id, bob.userId);
    assert.equal(entry.subject_user_id, bob.userId);
    assert.equal(entry.cluster_id, alpha);
    assert.equal(entry.organization_id, bob.orgId);
    assert.equal(entry.source_address, '127.0.0.1');
    assert.equal(entry.result, 'done');
    assert.match(entry.details, new RegExp(`key ${bob.keyId} SHA256:\\S+, login node 127\\.0\\.0\\.1:\\d+`));
    assert.doesNotMatch(entry.details, /secret-|pong/);
  }
  assert.equal(opened.target, closed.target);
  assert.equal(closed.reason, 'the person left');
  assert.match(closed.details, /opened 20\S+, \d+ s; \d+ bytes up, \d+ down; command: "python3; exit 3"$/);
  assert.match(other.details, new RegExp(`forwards to localhost:${port}$`));
  assert.deepEqual(await entries(service, `&cluster=${alpha}`), found);
});

test('a person’s own key that is refused is recorded once, however often it is tried within the minute', async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  await service.write(`/me/ssh-keys/${bob.keyId}/revoke`, { as: 'bob' });
  for (let round = 0; round < 3; round += 1) {
    const ran = await bob.ssh([bob.target, 'true']);
    assert.match(ran.err, /This key was revoked/);
  }
  const [refused, ...more] = await eventually(
    () => entries(service),
    (all) => all.length > 0,
  );
  assert.deepEqual(more, []);
  assert.ok(refused);
  assert.equal(refused.operation, 'ssh.login.refused');
  assert.equal(refused.target, bob.keyId);
  assert.equal(refused.result, 'refused: key_revoked');
  assert.equal(refused.subject_user_id, bob.userId);
});

test('draining: a stopping service gives open sessions their time, and their records are on disk when it has stopped', async () => {
  const [port = 0] = await freePorts(1);
  const gateway = { listen: `127.0.0.1:${port}`, port, limits: { drainSeconds: 5 } };
  await using service = await startTestApp({ config: { gateway } });
  using bob = await sshPerson({ ...service, gatewayPort: port }, 'bob');
  const long = bob.start([bob.target, 'echo up; exec sleep 60']);
  const short = bob.start([bob.target, 'echo up; sleep 1; exit 5']);
  await Promise.all([long.said, short.said]);
  await service.app[Symbol.asyncDispose]();
  const [first, last] = await Promise.all([short.ended, long.ended]);
  fails(first, 5, /The gateway is being restarted: this session ends in 5 s/);
  fails(last, 255, /The gateway is being restarted\. Please connect again in a minute/);
  const store = await openStore(join(service.dataDir, 'data'));
  const rows = await listRows(store.read, 'audit_entries', { operation: 'ssh.session.closed' }, 'seq');
  await store.close();
  assert.deepEqual(
    rows.map(({ reason }) => reason),
    ['the person left', 'gateway stopped'],
  );
});

const refused = (userId: string, reason: string, remoteAddress: string, at = Date.now()): GatewayEvent => ({
  ...{ kind: 'refused', at, reason, message: 'a sentence' },
  subject: { clusterId: alpha, userId, keyId: 'ssh_key_1' },
  attempt: { loginName: `${alpha}.bob`, publicKey: '', fingerprint: 'SHA256:x', remoteAddress },
});

const written = async ({ read }: Store) => {
  const rows = read.selectFrom('audit_entries').select(['source_address', 'result', 'details']);
  return (await rows.where('operation', 'like', 'ssh.%').orderBy('seq').execute()).map(Object.values);
};

test('refusals that repeat are one entry with a count, and nothing is lost while the database takes no writes', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const bob = await userId(store, 'bob@physics.example');
  let down = true;
  let attempts = 0;
  const flaky: Store = {
    ...store,
    write(body, options) {
      attempts += 1;
      return down ? Promise.reject(new Error('disk full')) : store.write(body, options);
    },
  };
  const lines: string[] = [];
  const log = createLogger('error', (line) => lines.push(line));
  const records = startSessionRecords(flaky, log);
  for (let n = 0; n < 1000; n += 1) records.record(refused(bob, 'key_revoked', '10.0.0.1'));
  records.record(refused(bob, 'key_revoked', '10.0.0.2'));
  records.record(refused(bob, 'access_removed', '10.0.0.1'));
  await becomes(() => attempts > 1, true);
  assert.deepEqual(await written(store), []);
  assert.equal(lines.length, 1, 'what goes on is said once');
  down = false;
  await becomes(async () => (await written(store)).length, 3);
  await records.stop();
  assert.deepEqual(await written(store), [
    ['10.0.0.1', 'refused: key_revoked', 'key SHA256:x'],
    ['10.0.0.2', 'refused: key_revoked', 'key SHA256:x'],
    ['10.0.0.1', 'refused: access_removed', 'key SHA256:x'],
    ['10.0.0.1', 'refused: key_revoked', 'key SHA256:x; 999 more times'],
  ]);
});

test('a record that may have been written before is looked for until the trail can be read, and is there once', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const bob = await userId(store, 'bob@physics.example');
  let down = true;
  const flaky: Store = {
    ...store,
    get read() {
      if (down) throw new Error('cannot be read');
      return store.read;
    },
  };
  const before = startSessionRecords(store, createLogger('silent'));
  await before.record(refused(bob, 'key_revoked', '10.0.0.1', 1));
  await before.stop();
  const lines: string[] = [];
  const log = createLogger('error', (line) => lines.push(line));
  const records = startSessionRecords(flaky, log);
  const all = [1, 2].map((n) => records.record(refused(bob, 'key_revoked', `10.0.0.${n}`, n), true));
  await becomes(() => /gateway\.records\.failed.*cannot be read/.test(`${lines[0]}`), true);
  down = false;
  await Promise.all(all);
  await records.stop();
  assert.deepEqual(
    (await written(store)).map(([address]) => address),
    ['10.0.0.1', '10.0.0.2'],
  );
});

test('what is kept of a session is bounded, and cannot steer a terminal', () => {
  const uses = createUses();
  for (let n = 0; n < 100_000; n += 1) {
    uses.add({ kind: 'exec', command: `echo ${n}` });
    uses.add({ kind: 'forward', to: `localhost:${n}` });
  }
  assert.deepEqual([uses.commands.length, uses.commandCount], [20, 100_000]);
  assert.deepEqual([uses.forwards.length, uses.forwardCount], [20, 100_000]);
  const other = createUses();
  other.add({ kind: 'exec', command: `\u001b[2J${'x'.repeat(300_000)}` });
  other.add({ kind: 'exec', command: Buffer.from('echo ångström').toString('latin1') });
  assert.equal(other.commands[0]?.length, 201);
  assert.ok(!other.commands[0]?.includes('\u001b'));
  assert.equal(other.commands[1], 'echo ångström');
});

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

/** Session records: what the audit trail says of sessions, made by OpenSSH's own client in the whole service. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createUses, type GatewayEvent } from '../../src/gateway/ssh/events.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startSessionRecords } from '../../src/service/compose/session-records.ts';
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

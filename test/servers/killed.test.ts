/** Servers that stop, are killed or lose their database: sessions and people at the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { noServers, openServersLab, type RunningServer } from './lab.ts';

interface Past {
  id: string;
  end_reason: string;
}

const openAt = async (server: RunningServer): Promise<string[]> =>
  (await server.business('/operator/sessions', { as: 'root' })).body.sessions.map(
    ({ id }: { id: string }) => id,
  );
const pastAt = async (server: RunningServer): Promise<Past[]> =>
  (await server.business('/operator/sessions/past', { as: 'root' })).body.sessions;

test('kill -9 of a service, which comes back to its sessions; then of all of it, whose sessions another closes in the record', {
  skip: noServers,
}, async () => {
  // What is not confirmed for so long is not open any more, as far as A knows. B may take its time to come back.
  const gateway = (name: string) => (name === 'a' ? { limits: { confirmGraceSeconds: 20 } } : {});
  await using lab = await openServersLab({ gateway });
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  await lab.addKey(a);
  const ofA = lab.ssh(a);
  const ofB = lab.ssh(b);
  assert.deepEqual([await ofA.said, await ofB.said], ['up\n', 'up\n']);
  const both = await eventually(
    () => openAt(a),
    (ids) => ids.length === 2,
  );

  await b.kill('SIGKILL');
  const again = await lab.serve('b');
  assert.equal(again.events('gateway.process.found').length, 1, 'its gateway process lives');
  const listed = await eventually(
    () => openAt(again),
    (ids) => ids.length === 2,
  );
  assert.deepEqual(new Set(listed), new Set(both));
  ofB.child.stdin?.write('still here\n');
  await becomes(() => ofB.out(), 'up\nstill here\n');

  await again.kill('SIGKILL', 'all');
  await ofB.ended;
  const onA = await eventually(() => pastAt(a), hasPresumed);
  const presumed = onA.filter(({ end_reason: reason }) => isPresumed(reason));
  assert.deepEqual(fieldsOf(presumed, 'end_reason'), ['its server was not seen for 45 s']);
  assert.deepEqual(
    await openAt(a),
    both.filter((id) => id !== presumed[0]?.id),
  );
  ofA.child.stdin?.end('still here');
  assert.equal((await ofA.ended).out, 'up\nstill here');
});

test('a login at a server whose service is gone ends with a sentence, and the next server lets the person in', {
  skip: noServers,
}, async () => {
  await using lab = await openServersLab();
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  await lab.addKey(a);
  const open = lab.ssh(a);
  assert.equal(await open.said, 'up\n');
  await a.kill('SIGKILL');
  const { status, err } = await lab.ssh(a).ended;
  assert.equal(status, 255);
  assert.match(err, /Access cannot be confirmed at the moment\. Please try again shortly\./);
  const next = lab.ssh(b);
  assert.equal(await next.said, 'up\n');
  for (const { child, ended } of [open, next]) {
    child.stdin?.end('still here');
    assert.equal((await ended).out, 'up\nstill here');
  }
});

const isPresumed = (reason: string) => reason.includes('was not seen');
const hasPresumed = (all: Past[]) => all.some(({ end_reason: reason }) => isPresumed(reason));

interface Session {
  id: string;
  channels: number;
  bytes_up: number;
}

const sessionsAt = async (server: RunningServer): Promise<Session[]> =>
  (await server.business('/operator/sessions', { as: 'root' })).body.sessions;

test('a key that is revoked on one server ends the session on the other, which both list and either closes', {
  skip: noServers,
}, async () => {
  await using lab = await openServersLab();
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  const keyId = await lab.addKey(a);
  const first = lab.ssh(a);
  const second = lab.ssh(b);
  assert.equal(await first.said, 'up\n');
  assert.equal(await second.said, 'up\n');
  second.child.stdin?.write('hello\n');
  for (const server of [a, b]) {
    const listed = await eventually(
      () => sessionsAt(server),
      (all) => all.length === 2 && all.every(({ channels, bytes_up: up }) => channels === 1 && up >= 0),
    );
    assert.equal(listed.length, 2);
  }
  // What passed on the other is told as well, within the second for which an answer holds.
  await becomes(async () => (await sessionsAt(a)).some(({ bytes_up: up }) => up > 0), true);

  const third = lab.ssh(b);
  assert.equal(await third.said, 'up\n');
  const known = new Set((await sessionsAt(b)).map(({ id }) => id));
  const mine = (
    await eventually(
      () => sessionsAt(a),
      (all) => all.length === 3,
    )
  ).map(({ id }) => id);
  assert.deepEqual(new Set(mine), known);
  const own = await b.business('/me/ssh-sessions', { as: 'bob' });
  const last = own.body.sessions.at(-1).id;
  const closed = await a.write(`/operator/sessions/${last}/close`, { as: 'root', reason: 'it is late' });
  assert.equal(closed.status, 200, JSON.stringify(closed.body));
  assert.match((await third.ended).err, /An operator has closed this session: it is late/);
  await becomes(async () => (await sessionsAt(a)).length, 2);

  const revoked = await a.write(`/me/ssh-keys/${keyId}/revoke`, { as: 'bob' });
  assert.equal(revoked.status, 200);
  for (const session of [first, second]) assert.match((await session.ended).err, /This key was revoked/);
  const past = await eventually(
    async () => (await b.business('/operator/sessions/past', { as: 'root' })).body.sessions,
    (all) => all.filter((one: { end_reason: string }) => one.end_reason === 'key_revoked').length === 2,
  );
  assert.ok(past.some((one: { end_reason: string }) => one.end_reason === 'closed by an operator'));
});

test('while the database is away logins cannot be confirmed and sessions go on; when it is back, both servers are by themselves', {
  skip: noServers,
}, async () => {
  await using lab = await openServersLab({
    gateway: { limits: { recheckSeconds: 1, unconfirmedSeconds: 120 } },
  });
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  const keyId = await lab.addKey(a);
  const open = lab.ssh(b);
  assert.equal(await open.said, 'up\n');
  await becomes(async () => (await a.business('/operator/sessions', { as: 'root' })).body.sessions.length, 1);

  await lab.postgres.stop();
  const refused = await lab.ssh(b, 'true').ended;
  assert.equal(refused.status, 255);
  assert.match(refused.err, /Access cannot be confirmed at the moment|cannot be confirmed/);
  // The recheck of every second does not get through, and nothing ends for that.
  await becomes(() => b.events('gateway.recheck.failed').length > 1, true);
  assert.equal(open.child.exitCode, null);

  await lab.postgres.start();
  await becomes(async () => (await lab.ssh(b, 'true').ended).status, 0);
  // What is changed on one is heard on the other again.
  const revoked = await eventually(
    () => a.write(`/me/ssh-keys/${keyId}/revoke`, { as: 'bob' }),
    ({ status }) => status === 200,
  );
  assert.equal(revoked.status, 200);
  assert.match((await open.ended).err, /This key was revoked/);
  const past = await eventually(
    async () => (await a.business('/operator/sessions/past', { as: 'root' })).body.sessions,
    (all: { end_reason: string }[]) => all.some((one) => one.end_reason === 'key_revoked'),
  );
  assert.ok(past.length > 0);
});

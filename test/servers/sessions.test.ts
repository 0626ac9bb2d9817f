/** SSH sessions of two servers on one PostgreSQL: listed and closed from either, ended by what the other writes, and not lost with one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { noServers, openServersLab, type RunningServer } from './lab.ts';

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

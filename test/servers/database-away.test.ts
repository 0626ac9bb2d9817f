/** PostgreSQL is away: nobody is let in unconfirmed, open sessions go on for their grace, and it all comes back by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { noServers, openServersLab } from './lab.ts';

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

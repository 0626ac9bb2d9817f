/** A permission that ends by itself: open sessions end with it, and the gateway says why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, startTestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { sshPerson } from '../support/ssh-person.ts';

const day = 86_400_000;

test('an open session ends at the end of the permission, not before, and goes on when it was extended', async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  const path = `/organizations/${bob.orgId}/members/${bob.userId}/permissions`;
  const until = async (ms: number) => {
    const end = new Date(Date.now() + ms).toISOString();
    const body = { permissions: ['clusters.ssh'], expires_at: { 'clusters.ssh': end } };
    assert.equal((await service.write(path, { as: 'ada', method: 'PUT', body })).status, 200);
    return end;
  };
  await until(2 * day);
  const session = bob.start([bob.target, 'echo up; exec sleep 60']);
  await session.said;
  // The time of day, and not the age of what clusters reported.
  service.jump(day);
  assert.equal((await bob.ssh([bob.target, 'exit 7'])).status, 7);
  const end = await until(6 * day);
  service.jump(2 * day);
  assert.equal((await bob.ssh([bob.target, 'exit 8'])).status, 8);
  assert.equal(session.child.exitCode, null);

  service.jump(3 * day);
  const words = new RegExp(
    `Your SSH access to this cluster ended on ${end.slice(0, 16).replace('T', ' ')} UTC`,
  );
  fails(await session.ended, 255, words);
  const refused = await bob.ssh([bob.target, 'true']);
  fails(refused, 255, words);
  assert.match(refused.err, /andromeda access request clusters\.ssh/);

  const forGood = { permissions: ['clusters.ssh'], expires_at: { 'clusters.ssh': null } };
  assert.equal((await service.write(path, { as: 'ada', method: 'PUT', body: forGood })).status, 200);
  // The account goes and comes back, and login nodes restart for either.
  await becomes(async () => (await bob.ssh([bob.target, 'exit 9'])).status, 9);
});

test('a permission that ends in a moment ends an open session then, by the clock of the host', async () => {
  await using service = await startTestApp({
    gatewayLimits: { recheckSeconds: 60 },
    sync: { intervalSeconds: 60 },
  });
  using bob = await sshPerson(service, 'bob');
  const path = `/organizations/${bob.orgId}/members/${bob.userId}/permissions`;
  const session = bob.start([bob.target, 'echo up; exec sleep 60']);
  await session.said;
  const end = new Date(Date.now() + 3_000).toISOString();
  const body = { permissions: ['clusters.ssh'], expires_at: { 'clusters.ssh': end } };
  assert.equal((await service.write(path, { as: 'ada', method: 'PUT', body })).status, 200);
  const ended = await session.ended;
  // Where the machine is so busy that nobody is asked within a second, the login node ends it first, without these words.
  assert.match(ended.err, /^$|Your SSH access to this cluster ended on/);
  assert.notEqual(ended.status, 0);
  assert.ok(new Date().toISOString() >= end, 'not before its end');
});

/** Access that lapses without a sign-in, and keys that lapse by their age: at the gateway, on the clusters, in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { findKubernetesAccess } from '../../src/store/access/kubernetes-access.ts';
import { alpha, beta, eventually, startTestApp, type TestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';

const day = 86_400_000;

/** What the newest access list says of a person. */
async function entryOf({ app }: TestApp, userId: string) {
  return app.store.read
    .selectFrom('access_list_users')
    .select(['desired_login_state as state', 'key_fingerprints as keys'])
    .where('user_id', '=', userId)
    .where('until_version', 'is', null)
    .executeTakeFirstOrThrow();
}

async function mayUseKubernetes({ app }: TestApp, userId: string, orgId: string): Promise<boolean> {
  const cluster = { id: beta, organizationId: orgId };
  const { members } = await findKubernetesAccess(app.store, cluster, undefined, Date.now());
  return members.some((member) => member.userId === userId);
}

test('without a sign-in access lapses everywhere, in words, and a sign-in brings all of it back', async () => {
  await using service = await startTestApp({ config: { access: { maxDaysWithoutSignIn: 30 } } });
  using ada = await sshPerson(service, 'ada');
  const { userId, orgId } = ada;
  // As of somebody who stays signed in all the time: it is the sign-in that counts, not what is done with it.
  const token = await service.issuer.token('ada', {}, 400 * 86_400);
  const me = async () => (await service.business('/me', { token })).body;
  const access = async () =>
    (await service.platform(`/clusters/${alpha}/ssh-access?organizationId=${orgId}`, { token })).body;
  assert.equal((await me()).notices, undefined);

  service.advance(24 * day);
  assert.match((await me()).notices.join(), /lapse on \S+ at \S+ UTC, 30 days after your last sign-in/);
  await eventually(access, ({ ready }) => ready === true);
  const session = ada.start([ada.target, 'echo up; exec sleep 60']);
  await session.said;
  assert.equal(await mayUseKubernetes(service, userId, orgId), true);

  service.advance(7 * day);
  const words = /You have not signed in for 30 days, so your access has lapsed\. Sign in with/;
  const ended = await session.ended;
  assert.equal(ended.status, 255);
  assert.match(ended.err, words);
  const refused = await ada.ssh([ada.target, 'true']);
  assert.equal(refused.status, 255);
  assert.match(refused.err, words);
  const { ready, reason, lapsed } = await access();
  assert.deepEqual([ready, reason], [false, 'access_not_projected']);
  assert.match(lapsed, words);
  assert.match((await me()).notices.join(), /SSH and Kubernetes access have lapsed\. Sign in/);
  assert.equal(await mayUseKubernetes(service, userId, orgId), false);
  // The keys go, and the account stays: without it the cluster would restart, and jobs end.
  const entry = await eventually(
    () => entryOf(service, userId),
    ({ keys }) => keys === '[]',
  );
  assert.equal(entry.state, 'ready');

  const person = async () => {
    const { body } = await service.business('/operator/people?email=ada@physics.example', { as: 'root' });
    return body.people[0];
  };
  assert.ok(Date.parse((await person()).access_lapses_at) < Date.now() + 31 * day);
  const refreshed = await service.issuer.token('ada', { auth_time: Math.floor(Date.now() / 1000) });
  await service.business('/me', { token: refreshed });
  assert.equal((await access()).ready, false, 'a token that was refreshed is no sign-in');
  const back = await service.business('/me', { as: 'ada' });
  assert.equal(back.body.notices, undefined);
  await eventually(access, (now) => now.ready === true);
  assert.equal((await ada.ssh([ada.target, 'exit 7'])).status, 7);
  assert.equal(await mayUseKubernetes(service, userId, orgId), true);
  assert.ok(Date.parse((await person()).access_lapses_at) > Date.now() + 59 * day);

  service.jump(400 * day);
  assert.equal((await ada.ssh([ada.target, 'exit 8'])).status, 8, 'a clock that is set wrong ends nothing');
});

test('a key lapses by its age, in words, and another one takes its place', async () => {
  const lines: string[] = [];
  const log = createLogger('warn', (line) => lines.push(line));
  await using service = await startTestApp({ log, config: { access: { keyMaxDays: 60 } } });
  using bob = await sshPerson(service, 'bob');
  const keys = async () => (await service.business('/me/ssh-keys', { as: 'bob' })).body.keys;
  const [{ lapses_at: at, created_at: since }] = await keys();
  assert.equal(Date.parse(at) - Date.parse(since), 60 * day);

  service.advance(61 * day);
  const refused = await bob.ssh([bob.target, 'true']);
  assert.match(refused.err, /This key has lapsed \(no_keys\): keys are good for 60 days\. Register another/);
  const { reason, lapsed } = await bob.access();
  assert.equal(reason, 'no_keys');
  assert.match(String(lapsed), /This key has lapsed/);
  const { body } = await service.business('/me', { as: 'bob' });
  assert.match(
    body.notices.join(),
    /The SSH key SHA256:\S+ has lapsed: keys are good for 60 days\. Register/,
  );
  await eventually(
    () => entryOf(service, bob.userId),
    (entry) => entry.keys === '[]' && entry.state === 'ready',
  );

  using again = await sshPerson(service, 'bob');
  assert.equal((await again.ssh([again.target, 'exit 5'])).status, 5);
  const old = await bob.ssh([bob.target, 'true']);
  assert.match(old.err, /This key has lapsed/);
});

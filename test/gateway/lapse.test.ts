/** Access that lapses without a sign-in, keys by their age and permissions by their end: at the gateway, on the clusters, in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/lib/log.ts';
import { findKubernetesAccess } from '../../src/store/access/kubernetes-access.ts';
import { findRow } from '../../src/store/engine/rows.ts';
import { alpha, becomes, beta, eventually, startTestApp, type TestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { sshPerson } from '../support/ssh-person.ts';

const day = 86_400_000;

/** What the newest access list says of a person. */
async function entryOf({ app }: TestApp, userId: string) {
  const where = { user_id: userId, until_version: null };
  return (await findRow(app.store.read, 'access_list_users', where)) ?? assert.fail();
}

async function mayUseKubernetes({ app }: TestApp, userId: string, orgId: string): Promise<boolean> {
  const cluster = { id: beta, organizationId: orgId };
  const { members } = await findKubernetesAccess(app.store, cluster, undefined, Date.now());
  return members.some((member) => member.userId === userId);
}

test('without a sign-in access lapses everywhere, in words, and a sign-in brings all of it back', async () => {
  await using service = await startTestApp({
    config: { access: { maxHoursWithoutSignIn: 30 * 24, endOpenSessions: true } },
    gatewayLimits: { signInWaitSeconds: 2 },
  });
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
  fails(await session.ended, 255, words);
  const refused = await ada.ssh([ada.target, 'true']);
  fails(refused, 255, words);
  assert.match(refused.err, /This login waits 2 s for it\.\r\n.*No sign-in came within 2 s/s);
  const { ready, reason, lapsed } = await access();
  assert.deepEqual([ready, reason], [false, 'access_not_projected']);
  assert.match(lapsed, words);
  assert.match((await me()).notices.join(), /SSH and Kubernetes access have lapsed\. Sign in/);
  assert.equal(await mayUseKubernetes(service, userId, orgId), false);
  // Keys and account stay on the cluster: login nodes accept connections from the gateway only.
  assert.notEqual((await entryOf(service, userId)).key_fingerprints, '[]');

  const person = async () => {
    const { body } = await service.business('/operator/people?email=ada@physics.example', { as: 'root' });
    return body.people[0];
  };
  assert.ok(Date.parse((await person()).access_lapses_at) < Date.now() + 31 * day);
  const refreshed = await service.issuer.token('ada', { auth_time: Math.floor(Date.now() / 1000) });
  await service.business('/me', { token: refreshed });
  assert.equal((await access()).ready, false, 'a token that was refreshed is no sign-in');
  const silent = await service.issuer.token('ada', { auth_time: undefined });
  await service.business('/me', { token: silent });
  assert.equal((await access()).ready, false, 'nor is one that does not say when it was');
  const { body: problems } = await service.business('/operator/problems', { as: 'root' });
  assert.match(JSON.stringify(problems), /do not say when people signed in \(auth_time\)/);
  const back = await service.business('/me', { as: 'ada' });
  assert.equal(back.body.notices, undefined);
  await eventually(access, (now) => now.ready === true);
  assert.equal((await ada.ssh([ada.target, 'exit 7'])).status, 7);
  assert.equal(await mayUseKubernetes(service, userId, orgId), true);
  assert.ok(Date.parse((await person()).access_lapses_at) > Date.now() + 59 * day);

  service.jump(400 * day);
  assert.equal((await ada.ssh([ada.target, 'exit 8'])).status, 8, 'a clock that is set wrong ends nothing');
});

const hour = 3_600_000;

test('a login waits for the sign-in and goes on with it, and open sessions go on all the while', async () => {
  await using service = await startTestApp({
    config: { access: { maxHoursWithoutSignIn: 12 } },
    gatewayLimits: { recheckSeconds: 60 },
  });
  using ada = await sshPerson(service, 'ada');
  const session = ada.start([ada.target, 'echo up; read line; echo "$line"']);
  await session.said;
  /** After those hours the cluster reports before a session is checked again: one that is silent ends sessions. */
  const passHours = async (hours: number) => {
    let reports = 0;
    const stop = service.app.store.observationAges.onRecorded((id) => {
      if (id === alpha) reports += 1;
    });
    service.advance(hours * hour);
    await eventually(() => Promise.resolve(reports), Boolean);
    stop();
  };

  await passHours(13);
  const login = ada.start([ada.target, 'echo in']);
  const copy = ada.start(['-T', ada.target, 'cat > /dev/null; echo copied']);
  copy.child.stdin?.end('data');
  await sleep(1_500);
  await service.business('/me', { as: 'ada' });
  const [one, other] = await Promise.all([login.ended, copy.ended]);
  assert.deepEqual([one.status, one.out, other.status, other.out], [0, 'in\n', 0, 'copied\n']);
  for (const { err } of [one, other])
    assert.match(
      err,
      /^You have not signed in for 12 hours, .* Sign in with `andromeda auth login`, and it comes back at once\. This login waits 60 s for it\.\r?\n/,
    );
  assert.equal((await ada.ssh([ada.target, 'true'])).err, '', 'silent from then on');

  await passHours(13);
  session.child.stdin?.end('still here\n');
  const { out, err, status } = await session.ended;
  assert.deepEqual([out, err, status], ['up\nstill here\n', '', 0]);

  // An exemption has an end and a reason.
  const now = () => Date.now() + 26 * hour;
  const exempt = (until: string | null) =>
    service.write(`/operator/people/${ada.userId}/sign-in-exemption`, {
      as: 'root',
      method: 'PUT',
      body: { until },
    });
  assert.equal((await exempt('2001-01-01T00:00:00Z')).status, 400);
  const until = new Date(now() + 20 * hour).toISOString();
  assert.equal((await exempt(until)).body.sign_in_exempt_until, until);
  assert.equal((await ada.ssh([ada.target, 'exit 3'])).status, 3);
  await exempt(null);
  const late = ada.start([ada.target, 'true']);
  await sleep(1_500);
  assert.equal(late.child.exitCode, null, 'it waits');
  late.child.kill();
});

test('an organization asks for a sign-in sooner, and a session that is to end says so before', async () => {
  await using service = await startTestApp({
    config: { access: { maxHoursWithoutSignIn: 48, endOpenSessions: true } },
    gatewayLimits: { signInWaitSeconds: 1, recheckSeconds: 1, confirmGraceSeconds: 86_400 },
  });
  using ada = await sshPerson(service, 'ada');
  const { body: set } = await service.write(`/operator/organizations/${ada.orgId}`, {
    as: 'root',
    method: 'PUT',
    body: { max_hours_without_sign_in: 8 },
  });
  assert.equal(set.max_hours_without_sign_in, 8);
  const session = ada.start([ada.target, 'echo up; exec sleep 60']);
  await session.said;
  const reads = (words: RegExp) => becomes(() => words.test(session.err()), true);
  service.advance(7.8 * hour);
  await reads(/This session ends in 1\d min: you last signed in nearly 8 hours ago\. Sign in/);
  service.advance(0.15 * hour);
  await reads(/This session ends in [1-4] min: /);
  service.advance(0.1 * hour);
  const { err } = await session.ended;
  assert.match(err, /You have not signed in for 8 hours, so your access has lapsed/);
  assert.match((await ada.ssh([ada.target, 'true'])).err, /No sign-in came within 1 s/);
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
    (entry) => entry.key_fingerprints === '[]' && entry.desired_login_state === 'ready',
  );

  using again = await sshPerson(service, 'bob');
  assert.equal((await again.ssh([again.target, 'exit 5'])).status, 5);
  const old = await bob.ssh([bob.target, 'true']);
  assert.match(old.err, /This key has lapsed/);
});

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
  // On a busy machine the login node may end the session before the gateway says why.
  assert.match(ended.err, /^$|Your SSH access to this cluster ended on/);
  assert.notEqual(ended.status, 0);
  assert.ok(new Date().toISOString() >= end, 'not before its end');
});

/** Reviews of members' access over the API: permissions and notices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { startMemberReviews } from '../../src/service/compose/permission-ends.ts';
import { alpha, becomes, physicsWith, startTestApp, type TestApp } from '../support/app.ts';
import { organizationOf } from './organization.ts';

const day = 86_400_000;

const lab = physicsWith(
  { email: 'amy@physics.example', role: 'admin' },
  { email: 'max@physics.example', role: 'member', permissions: ['members.manage'] },
);

/** Time passes, and then the service does a round as it does each hour. */
async function pass(service: TestApp, clock: { passed: number }, days: number): Promise<void> {
  service.advance(days * day);
  clock.passed += days * day;
  const lines: string[] = [];
  const log = createLogger('debug', (line) => lines.push(line));
  const { store } = service.app;
  const stop = startMemberReviews({ store, months: 6, log, now: () => Date.now() + clock.passed });
  await becomes(() => lines.join('').includes('access.reviewed'), true);
  await stop();
}

async function start() {
  const service = await startTestApp({ lab, config: { access: { reviewMonths: 6 } } });
  const clock = { passed: 0 };
  const organization = await organizationOf(service);
  const { base, permit } = organization;
  const both = ['clusters.read', 'clusters.ssh'];
  return {
    ...{ ...organization, service },
    pass: (days: number) => pass(service, clock, days),
    due: async (as = 'ada') => {
      const { status, body } = await service.business(`${base}/access-review?due=true&sort=email`, { as });
      assert.equal(status, 200, JSON.stringify(body));
      return body.people.map((one: { email: string; keep_by: string }) => [
        one.email.split('@')[0],
        Math.round((Date.parse(one.keep_by) - Date.now() - clock.passed) / day),
      ]);
    },
    /** As the console and `members grant … --expires never` do. */
    keep: (name: string, as = 'ada') =>
      permit(as, name, both, { 'clusters.read': null, 'clusters.ssh': null }, { reason: 'still here' }),
    notices: async (name: string): Promise<string[]> =>
      (await service.business('/me', { as: name })).body.notices ?? [],
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('owners see what the review ends and when, the people are informed of it, and an owner keeps it', async () => {
  await using at = await start();
  const { service, org, base, due, keep, notices, held } = at;
  assert.deepEqual(await due(), []);
  await at.pass(183);
  assert.deepEqual(await due(), [
    ['bob', 30],
    ['max', 30],
  ]);
  assert.deepEqual(await due('max'), await due());
  assert.deepEqual(await due('root'), await due());
  const past = `at=${new Date().toISOString()}&due=true`;
  const both = await service.business(`${base}/access-review?${past}`, { as: 'ada' });
  assert.match(both.body.message, /With at, give neither cluster nor due/);
  const [notice, ...more] = await notices('bob');
  assert.deepEqual(more, []);
  assert.match(
    notice ?? '',
    /^Your clusters\.read, clusters\.ssh in Physics end at \S+ \S+ UTC, unless an owner keeps them\. Ask for more time before that: andromeda access request clusters\.read clusters\.ssh$/,
  );
  const { expires_at: limited } = await held('bob');
  assert.deepEqual(Object.keys(limited), ['clusters.read', 'clusters.ssh']);
  const path = `/clusters/${alpha}/ssh-access?organizationId=${org}`;
  const ssh = await service.platform(path, { as: 'bob' });
  assert.equal(ssh.body.access_expires_at, limited['clusters.ssh']);

  // What they hold themselves has an end now, so that they can keep nothing.
  for (const as of ['bob', 'max']) assert.equal((await keep('bob', as)).status, 403, as);
  assert.equal((await keep('bob', 'amy')).status, 200);
  assert.equal((await held('bob')).expires_at, undefined);
  assert.deepEqual(await notices('bob'), []);
  assert.deepEqual(await due(), [['max', 30]]);
  const { body: trail } = await service.business(`/operator/audit?operation=setMemberPermissions`, {
    as: 'root',
  });
  assert.ok(JSON.stringify(trail).includes('still here'));
});

test('who is removed, or loses what the review ends, is not shown any more', async () => {
  await using at = await start();
  const { due } = at;
  await at.pass(183);
  assert.equal((await at.remove('max')).status, 200);
  assert.deepEqual(await due(), [['bob', 30]]);
  assert.equal((await at.permit('ada', 'bob', [])).status, 200);
  assert.deepEqual(await due(), []);
});

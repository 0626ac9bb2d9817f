/** GPU time by person and day: whose a person sees, from where it is, and how long it is kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dayOf, lastDays } from '../../src/domain/clusters/gpu-hours.ts';
import { addObservedGpuTime, listGpuDays, saveGpuDays } from '../../src/store/clusters/gpu-days.ts';
import { findObservation } from '../../src/store/clusters/observations.ts';
import { alpha, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { changeReport, silence } from './support.ts';

interface Hours {
  source?: string;
  first_day?: string;
  gpu_hours: number;
  members_gpu_hours: number;
  people: { user: string; person?: string; mine: boolean; gpu_hours: number }[];
  days: { day: string; gpu_hours: number }[];
  limits: object[];
}

const hour = 3_600;

async function asker(service: TestApp) {
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  return async (as: string, days = 30) =>
    service.platform(`/gpu-hours?businessOrgId=${org}&days=${days}`, { as });
}

test('GET /gpu-hours: by person and by day, of the days that are asked for', async () => {
  await using service = await startTestApp();
  const ask = await asker(service);
  const isObserved = () => findObservation(service.app.store.read, alpha, 'slurm');
  await eventually(isObserved, (found) => found !== undefined);
  await silence(service, alpha);
  const [today = '', yesterday = '', old = ''] = [0, 1, 20].map((ago) => lastDays(Date.now(), 90)[ago]);
  await service.app.store.write((tx) =>
    saveGpuDays(tx, alpha, [
      { day: today, seconds: { bob: 2 * hour, site: hour } },
      { day: yesterday, seconds: { bob: hour / 2 } },
      { day: old, seconds: { ada: 10 * hour } },
    ]),
  );
  const hours = async (as: string, days?: number): Promise<Hours> => (await ask(as, days)).body.items[0];
  const week = await hours('ada', 7);
  assert.equal(week.source, 'slurmdbd');
  assert.deepEqual(
    week.people.map(({ user, mine, gpu_hours: of, person }) => [user, of, mine, person !== undefined]),
    [
      ['bob', 2.5, false, true],
      ['site', 1, false, false],
    ],
  );
  assert.deepEqual([week.gpu_hours, week.members_gpu_hours, week.first_day], [3.5, 2.5, yesterday]);
  assert.deepEqual(week.days, [
    { day: yesterday, gpu_hours: 0.5 },
    { day: today, gpu_hours: 3 },
  ]);
  assert.equal((await hours('ada')).gpu_hours, 13.5);
  // The simulated cluster's Slurm shows everyone; one that has PrivateData=usage, or does not say, shows people their own.
  assert.equal((await hours('bob')).people.length, 3);
  for (const usageIsPrivate of [true, undefined]) {
    const limits = [
      { name: 'Fairshare', value: '77', wanted: '40' },
      { user: 'ada', name: 'MaxJobs', value: '3' },
    ];
    await changeReport(service, alpha, { usageIsPrivate, limits });
    const { people, gpu_hours: all } = await hours('bob');
    assert.deepEqual([people.map(({ user }) => user), all], [['bob'], 13.5]);
    assert.deepEqual((await hours('bob')).limits, [{ name: 'Fairshare', value: '77', lab_file: '40' }]);
    assert.equal((await hours('ada')).limits.length, 2);
    for (const as of ['ada', 'root']) assert.equal((await hours(as)).people.length, 3, as);
  }
  assert.equal((await ask('eve')).status, 403);
  assert.equal((await ask('ada', 91)).status, 422);
});

test('without accounting running jobs are added up from report to report, and gaps are not', async () => {
  const clusters = physics.clusters?.map((one) =>
    one.id === alpha && one.simulated
      ? {
          ...one,
          simulated: {
            ...one.simulated,
            runningJobs: [{ id: '1', user: 'bob', name: 'train', machines: ['alpha-1'] }],
          },
        }
      : one,
  );
  await using service = await startTestApp({ lab: { ...physics, clusters: clusters ?? [] } });
  const ask = await asker(service);
  const hours = async (): Promise<Hours> => (await ask('ada')).body.items[0];
  const seen = await eventually(hours, ({ gpu_hours: of }) => of > 0);
  assert.deepEqual([seen.source, seen.people.map(({ user }) => user)], ['observed', ['bob']]);

  await silence(service, alpha);
  const { store } = service.app;
  const jobs = ['eve', 'constructor'].map((user) => ({ id: '2', user, name: '', machines: [], gpus: 4 }));
  const add = (ago: number) =>
    store.write((tx) => addObservedGpuTime(tx, alpha, { jobs, since: tx.now - ago * 1_000 }));
  const held = async (user: string) => {
    const days = await listGpuDays(store.read, alpha, lastDays(Date.now(), 2)[1] ?? '');
    return days.reduce(
      (sum, { seconds }) => sum + (Object.entries(seconds).find(([one]) => one === user)?.[1] ?? 0),
      0,
    );
  };
  await add(60);
  await add(30);
  for (const user of ['eve', 'constructor']) assert.equal(await held(user), 360, user);
  await add(3_600);
  assert.equal(await held('eve'), 360);

  // What is known of more than ninety days ago goes; what accounting says stands in the place of what was observed.
  const day = dayOf(Date.now());
  await store.write((tx) => saveGpuDays(tx, alpha, [{ day: '2020-01-01', seconds: { bob: 1 } }]));
  await store.write((tx) => saveGpuDays(tx, alpha, [{ day, seconds: { bob: hour } }]));
  const known = await listGpuDays(store.read, alpha, '');
  assert.deepEqual(
    known.find((one) => one.day === day),
    { day, source: 'slurmdbd', seconds: { bob: hour } },
  );
  assert.equal(known[0]?.day === '2020-01-01', false);
});

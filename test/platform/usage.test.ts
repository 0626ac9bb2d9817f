import assert from 'node:assert/strict';
import { test } from 'node:test';
import { organizationOf } from '../business/organization.ts';
import { alpha, becomes, beta, eventually, loginless, physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { changeReport, setCluster, setSimulated, silence } from './support.ts';

test('GET /clusters/{clusterId}/usage: what is free, what is held, what is away and why, and what is not known', async () => {
  await using service = await startTestApp();
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const usage = async () =>
    (await service.platform(`/clusters/${alpha}/usage?businessOrgId=${org}`, { as: 'bob' })).body;
  await setSimulated(service, alpha, {
    computeNodes: 11,
    gpusInUse: 5,
    nodesDrained: 1,
    drainReason: 'ECC <b>errors</b>',
  });
  const { gpus, machines } = await eventually(usage, (body) => body.gpus?.in_use === 5);
  assert.deepEqual(gpus, {
    ...{ total: 88, free: 75, in_use: 5, away: 8, unknown: 0 },
    ...{ free_nodes: 9, biggest_block: 8 },
  });
  assert.deepEqual(
    fieldsOf(machines, 'name'),
    Array.from({ length: 11 }, (_, index) => `alpha-${index + 1}`),
  );
  const { id, observed_at: _at, ...last } = machines.at(-1);
  assert.deepEqual(last, {
    name: 'alpha-11',
    takes_work: false,
    gpu_count: 8,
    gpus_in_use: 0,
    reason: 'ECC <b>errors</b>',
  });
  // What an operator keeps from work is not free either.
  const first = machines[0].id;
  await service.write(`/operator/machines/${first}/quarantine`, { as: 'root', reason: 'ECC errors' });
  const kept = await usage();
  assert.deepEqual(kept.gpus, {
    ...{ total: 88, free: 72, in_use: 5, away: 11, unknown: 0 },
    ...{ free_nodes: 9, biggest_block: 8 },
  });
  assert.equal(kept.machines[0].reason, 'An operator keeps it from work');
  assert.equal(kept.machines.at(-1).id, id);

  // Old is not now.
  await silence(service, alpha);
  service.advance(300_000);
  const old = await usage();
  assert.deepEqual(old.gpus, {
    ...{ total: 88, free: 0, in_use: 0, away: 0, unknown: 88 },
    ...{ free_nodes: 0, biggest_block: 0 },
  });
  assert.deepEqual(
    [old.machines[1].takes_work, old.machines[1].gpus_in_use, old.machines.at(-1).reason],
    [null, undefined, undefined],
  );
  await setCluster(service, alpha, { state: 'released' });
  assert.deepEqual((await usage()).machines, []);
});

test('GET /usage: of several clusters as of each, without those that one does not see', async () => {
  await using service = await startTestApp();
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const ask = (ids: string, as = 'bob') =>
    service.platform(`/usage?businessOrgId=${org}&cluster_ids=${ids}`, { as });
  const one = await eventually(
    async () => (await service.platform(`/clusters/${alpha}/usage?businessOrgId=${org}`, { as: 'bob' })).body,
    (body) => body.observed_at !== undefined,
  );
  assert.equal(one.scheduler, 'sunk');
  const unknown = '11111111-2222-4333-8444-555555555555';
  const { body } = await ask(`${alpha},${unknown},${alpha}`);
  const withoutTimes = (text: object) => JSON.stringify(text).replaceAll(/"observed_at":"[^"]*"/g, '');
  assert.equal(withoutTimes(body.items), withoutTimes([one]));
  assert.deepEqual((await ask(alpha, 'eve')).body, { items: [] });
  assert.equal((await ask('alpha-is-no-identifier-of-any-cluster')).status, 400);
  const many = Array.from({ length: 101 }, (_, n) =>
    unknown.replace('555555555555', String(n).padStart(12, '0')),
  );
  assert.equal((await ask(many.join(','))).status, 422);
  assert.equal((await ask(many.slice(0, 100).join(','))).status, 200);
});

test('jobs: everyone sees those of the cluster where Slurm shows them, else their own, and owners and staff all', async () => {
  const [cluster, ...others] = physics.clusters ?? [];
  if (!cluster?.simulated) throw new Error('unreachable');
  const runningJobs = [
    { id: '12', user: 'site', name: 'other', machines: ['alpha-2'] },
    { id: '4711_3', user: 'bob', name: 'train', machines: ['alpha-1'] },
  ];
  const lab = {
    ...physics,
    clusters: [{ ...cluster, simulated: { ...cluster.simulated, runningJobs } }, ...others],
    grants: [{ user: 'guest@elsewhere.example', cluster: 'alpha', relation: 'kubernetes.viewer' }],
  } as typeof physics;
  await using service = await startTestApp({ lab });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const ask = async (as: string) =>
    (await service.platform(`/usage?businessOrgId=${org}&cluster_ids=${alpha}`, { as })).body.items[0];
  const seen = await eventually(
    () => ask('bob'),
    (one) => one?.jobs?.length === 2,
  );
  const [mine, other] = seen.jobs;
  const { started_at: startedAt, person, ...rest } = mine;
  assert.deepEqual(rest, {
    ...{ id: '4711_3', name: 'train', user: 'bob', mine: true, machines: ['alpha-1'], gpus: 8 },
  });
  assert.ok(Date.parse(startedAt) <= Date.now());
  assert.equal(typeof person, 'string');
  assert.deepEqual([other.user, other.mine, 'person' in other], ['site', false, false]);

  // Slurm's "everyone" are those with an account there, and not who was let in to Kubernetes from elsewhere.
  const guest = await service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const asGuest = { token: guest };
  const { body: shared } = await service.platform(
    `/usage?businessOrgId=${org}&cluster_ids=${alpha}`,
    asGuest,
  );
  assert.deepEqual(
    [shared.items[0].jobs, shared.items[0].other_jobs],
    [[], { jobs: 2, gpus: 16, pending: 0 }],
  );

  // As a cluster reports whose slurm.conf has PrivateData=jobs, and as one that does not say.
  await silence(service, alpha);
  for (const jobsArePrivate of [true, undefined]) {
    const waiting = ['site', 'bob'].map((user, at) => {
      return { id: `5${at}`, user, name: 'later', reason: 'Priority', gpus: 4 };
    });
    const pending = { pendingJobs: waiting, moreJobs: { running: 0, pending: 0 } };
    await changeReport(service, alpha, { jobsArePrivate, ...pending });
    const bob = await ask('bob');
    assert.deepEqual(fieldsOf(bob.jobs, 'id'), ['4711_3']);
    assert.deepEqual(bob.other_jobs, { jobs: 1, gpus: 8, pending: 1 });
    assert.deepEqual(
      bob.pending_jobs.map(({ person: _, ...one }: { person: string }) => one),
      [{ id: '51', name: 'later', user: 'bob', mine: true, gpus: 4, reason: 'Priority', ahead: 1 }],
    );
    for (const as of ['ada', 'root']) {
      const all = await ask(as);
      assert.deepEqual([all.jobs.length, 'other_jobs' in all], [2, false], as);
    }
  }
  // What ran minutes ago is not what runs.
  await service.app.store.write(async ({ db }) => {
    const old = { observed_at: '2026-01-01T00:00:00.000Z' };
    await db.updateTable('observations').set(old).where('cluster_id', '=', alpha).execute();
  });
  assert.equal('jobs' in (await ask('ada')), false);
});

test('pods that hold GPUs: for owners, staff and members who are let in to Kubernetes', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: loginless } });
  const { org_id: org } = (await service.business('/me', { as: 'ada' })).body.memberships[0];
  const ask = async (as: string) =>
    (await service.platform(`/clusters/${beta}/usage?businessOrgId=${org}`, { as })).body;
  await becomes(async () => (await ask('ada')).machines?.length, 2);
  await silence(service, beta);
  const pod = { namespace: 'team', name: 'notebook', machine: 'beta-1', gpus: 2 };
  await changeReport(service, beta, { pods: [pod] }, 'kubernetes');
  for (const as of ['ada', 'root']) assert.deepEqual((await ask(as)).pods, [pod], as);
  assert.equal('pods' in (await ask('bob')), false);
  const { permit } = await organizationOf(service);
  assert.equal((await permit('ada', 'bob', ['clusters.read', 'clusters.kubernetes'])).status, 200);
  assert.deepEqual((await ask('bob')).pods, [pod]);
});

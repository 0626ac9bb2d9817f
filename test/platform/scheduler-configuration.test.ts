import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCluster } from '../../src/store/clusters/clusters.ts';
import { findSchedulerState } from '../../src/store/clusters/slurm-configurations.ts';
import { alpha, beta, eventually, physicsWith, startTestApp } from '../support/app.ts';
import { refused, setCluster, silence } from './support.ts';

const KiB = 1024;
const everything = {
  slurmPartitions: 'PartitionName=gpu Nodes=ALL Default=YES',
  slurmExtraConfig: 'MaxArraySize=2000\nNotASetting=1',
  cgroupExtraConfig: 'ConstrainSwapSpace=yes',
  gresConf: 'AutoDetect=nvml',
  prolog: { '50-check.sh': '#!/bin/sh\nexit 0\n' },
  epilog: { 'clean_up-1.sh': '#!/bin/bash\n' },
  controllerEtc: { 'topology.conf': 'SwitchName=s1 Nodes=ALL\n' },
  loginS6Packages: 'apt-get install -y htop',
  computeS6Packages: 'apt-get install -y nvtop',
};
const { slurmPartitions, gresConf, ...forDefault } = everything;

test('Slurm configuration', async (t) => {
  await using service = await startTestApp({
    lab: physicsWith({
      email: 'dora@physics.example',
      role: 'member',
      permissions: ['clusters.configure', 'clusters.read'],
    }),
  });
  const { org_id: org } = (await service.business('/me', { as: 'dora' })).body.memberships[0];
  const own = (id = alpha, of = org) => `/clusters/${id}/scheduler-configuration?businessOrgId=${of}`;
  const standard = `/organizations/${org}/scheduler-configuration`;
  const get = (path: string) => service.platform(path, { as: 'dora' });
  const put = (path: string, body: unknown, call: object = { as: 'dora' }) =>
    service.platform(path, { method: 'PUT', body, ...call });
  const cluster = async (id = alpha) =>
    (await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as: 'dora' })).body;
  const trail = () =>
    service.app.store.read
      .selectFrom('audit_entries')
      .selectAll()
      .where('operation', 'like', '%SchedulerConfiguration')
      .orderBy('seq')
      .execute();
  await eventually(
    () => cluster(),
    ({ status, spec }) => status.lifecycleState === 'active' && spec.versionGeneration === 1,
  );

  await t.test('PUT answers with the configuration as stored, and GET shows it', async () => {
    assert.deepEqual((await get(own())).body, {});
    const before = await cluster();
    assert.equal(before.spec.schedulerGeneration, 0);
    const { status, body } = await put(own(), everything);
    assert.equal(status, 200);
    assert.deepEqual(body, everything);
    assert.deepEqual((await get(own())).body, everything);
    const after = await cluster();
    assert.equal(after.spec.schedulerGeneration, 1);
    assert.equal(after.spec.desiredGeneration, before.spec.desiredGeneration + 1);
    assert.equal(after.spec.versionGeneration, before.spec.versionGeneration);
    assert.equal(after.status.lifecycleVersion, before.status.lifecycleVersion);
    assert.ok(after.metadata.updatedAt > before.metadata.updatedAt);
    assert.equal(after.metadata.createdAt, before.metadata.createdAt);
  });

  await t.test('an identical body changes nothing, in whatever order it is written', async () => {
    const before = await cluster();
    const entries = (await trail()).length;
    await put(own(), Object.fromEntries(Object.entries(everything).reverse()));
    const { status, body } = await put(own(), everything);
    assert.deepEqual([status, body], [200, everything]);
    assert.deepEqual(await cluster(), before);
    assert.equal((await trail()).length, entries);
  });

  await t.test('an identical body is passed on once more, for a cluster that refused it', async () => {
    const putAt = async () =>
      (await findSchedulerState(service.app.store.read, alpha)).configurationPutAt ?? '';
    const before = await putAt();
    service.advance(1_000);
    await put(own(), everything);
    assert.ok((await putAt()) > before);
  });

  await t.test('PUT replaces the whole configuration: an omitted field is cleared', async () => {
    const { body } = await put(own(), { slurmExtraConfig: '' });
    assert.deepEqual(body, { slurmExtraConfig: '' });
    assert.deepEqual((await get(own())).body, { slurmExtraConfig: '' });
    assert.equal((await cluster()).spec.schedulerGeneration, 2);
    // A field that names no file is as if it were left out.
    for (const empty of [{}, { prolog: {}, controllerEtc: {} }]) {
      assert.deepEqual((await put(own(), empty)).body, {});
      assert.equal((await cluster()).spec.schedulerGeneration, 3);
    }
  });

  await t.test('the business record’s version rises with it', async () => {
    const record = async () =>
      (await service.business(`/organizations/${org}/clusters/${alpha}`, { as: 'dora' })).body.version;
    const before = await record();
    await put(own(), { gresConf: 'x' });
    assert.equal(await record(), before + 1);
    await put(own(), { gresConf: 'x' });
    assert.equal(await record(), before + 1);
  });

  await t.test('one cluster’s configuration is its own', async () => {
    assert.deepEqual((await get(own(beta))).body, {});
    assert.equal((await cluster(beta)).spec.schedulerGeneration, 0);
  });

  await t.test('what breaks a rule is 400 invalid_scheduler_config, and nothing is stored', async () => {
    const before = await cluster();
    const body = { prolog: { 'a.sh': 'echo' } };
    refused(await put(own(), body), 400, 'invalid_scheduler_config', /prolog.*a\.sh.*#!/);
    refused(await put(standard, body), 400, 'invalid_scheduler_config', /prolog.*a\.sh.*#!/);
    assert.deepEqual(await cluster(), before);
    assert.deepEqual((await get(standard)).body, {});
  });

  await t.test('a name that objects have is a file like any other', async () => {
    const text = '{"prolog":{"__proto__":"#!/bin/sh","constructor":"#!"}}';
    const { status } = await put(own(), text);
    assert.equal(status, 200);
    const { body } = await get(own());
    assert.equal(JSON.stringify(body), text);
  });

  await t.test('422 invalid_request for what is no configuration object, and for none', async () => {
    const before = await cluster();
    const unknown = [{ slurmConf: '' }, { slurm_partitions: '' }];
    const misshapen = [{ slurmExtraConfig: 1 }, { slurmExtraConfig: null }, { prolog: ['#!'] }];
    for (const path of [own(), standard]) {
      for (const body of [[], '"x"', 'null', ...unknown, ...misshapen, { prolog: { a: 1 } }])
        refused(await put(path, body), 422, 'invalid_request');
      refused(await service.platform(path, { as: 'dora', method: 'PUT' }), 422, 'invalid_request', /missing/);
      refused(await put(path, '{"prolog":'), 400, 'invalid_request');
    }
    assert.deepEqual(await cluster(), before);
  });

  await t.test('the largest lawful configuration is taken though JSON writes each byte as six', async () => {
    const escaped = `#!${'\\u0001'.repeat(64 * KiB - 2)}`;
    const file = `"${escaped}"`;
    const text = `{"prolog":{"a":${file},"b":${file}},"epilog":{"a":${file}},"controllerEtc":{"a":${file}}}`;
    assert.ok(text.length > 1.4 * KiB * KiB);
    for (const path of [own(), standard]) {
      const { status, body } = await put(path, text);
      assert.equal(status, 200);
      assert.equal(body.epilog.a.length, 64 * KiB);
      refused(await put(path, `${text}${' '.repeat(KiB * KiB)}`), 400, 'invalid_request', /2 MiB/);
    }
    await put(standard, {});
  });

  await t.test('the organization default does not accept slurmPartitions or gresConf: 422', async () => {
    refused(await put(standard, { slurmPartitions }), 422, 'invalid_request', /slurmPartitions/);
    refused(await put(standard, { gresConf }), 422, 'invalid_request', /gresConf/);
    assert.deepEqual((await get(standard)).body, {});
  });

  await t.test('the default is replaced whole, and touches no cluster that is there', async () => {
    const before = [await cluster(alpha), await cluster(beta)];
    assert.deepEqual((await put(standard, { cgroupExtraConfig: 'x' })).body, { cgroupExtraConfig: 'x' });
    assert.deepEqual((await put(standard, forDefault)).body, forDefault);
    assert.deepEqual((await get(standard)).body, forDefault);
    assert.deepEqual((await get(own(beta))).body, {});
    const after = [await cluster(alpha), await cluster(beta)];
    assert.deepEqual(
      after.map(({ spec }) => spec),
      before.map(({ spec }) => spec),
    );
  });

  const create = (name: string) =>
    service.app.store.write((tx) =>
      createCluster(tx, {
        name,
        organizationId: org,
        scheduler: 'sunk',
        simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 0 },
      }),
    );

  await t.test('a cluster created afterwards starts with the default, which was written for it', async () => {
    const id = await create('gamma');
    assert.deepEqual((await get(own(id))).body, forDefault);
    assert.equal((await cluster(id)).spec.schedulerGeneration, 1);
    await put(standard, {});
    assert.deepEqual((await get(own(id))).body, forDefault, 'it keeps what it started with');
    const plain = await create('delta');
    assert.deepEqual((await get(own(plain))).body, {});
    assert.equal((await cluster(plain)).spec.schedulerGeneration, 0);
  });

  await t.test('the audit trail says which fields were changed, and where', async () => {
    const before = (await trail()).length;
    await put(own(), { slurmExtraConfig: 'a', epilog: { a: '#!' } });
    await put(standard, { slurmExtraConfig: 'a' });
    refused(await put(own(), { prolog: { a: 'x' } }), 400, 'invalid_scheduler_config');
    const entries = (await trail()).slice(before);
    assert.deepEqual(
      entries.map((one) => [one.target, one.cluster_id, one.organization_id, one.details]),
      [
        [alpha, alpha, org, 'Changed: controllerEtc, epilog, prolog, slurmExtraConfig'],
        [org, null, org, 'Changed: slurmExtraConfig'],
      ],
    );
  });

  await t.test('rule violations are reported before rights, as the shape of a request is', async () => {
    refused(await put(own(), { prolog: { a: 'x' } }, { as: 'eve' }), 400, 'invalid_scheduler_config');
    refused(await put(own(), { nonsense: 1 }, { as: 'eve' }), 422, 'invalid_request');
  });

  await t.test('two changes at the same instant are both there, one after the other', async () => {
    const before = (await cluster()).spec.schedulerGeneration;
    const texts = Array.from({ length: 8 }, (_, n) => `MaxArraySize=${n}`);
    const replies = await Promise.all(texts.map((slurmExtraConfig) => put(own(), { slurmExtraConfig })));
    assert.deepEqual(
      replies.map(({ status, body }) => [status, body.slurmExtraConfig]),
      texts.map((text) => [200, text]),
    );
    assert.equal((await cluster()).spec.schedulerGeneration, before + texts.length);
    assert.ok(texts.includes((await get(own())).body.slurmExtraConfig));
  });

  await t.test('the cluster applies it: what it observes is the new configuration version', async () => {
    const { desiredGeneration } = (await cluster()).spec;
    const options = await eventually(
      () => service.platform(`/clusters/${alpha}/options?businessOrgId=${org}`, { as: 'dora' }),
      ({ body }) => body.scheduler.ready?.observedGeneration === desiredGeneration,
    );
    assert.equal(options.body.scheduler.ready.status, 'True');
  });

  await t.test('it can be read in any state of the cluster, and written until a release starts', async () => {
    await silence(service, beta);
    for (const state of ['provisioning', 'active', 'releasing', 'released']) {
      await setCluster(service, beta, { state });
      assert.equal((await get(own(beta))).status, 200);
      const reply = await put(own(beta), { slurmExtraConfig: state });
      if (state === 'provisioning' || state === 'active') assert.equal(reply.status, 200);
      else refused(reply, 409, 'invalid_state', new RegExp(state));
    }
    assert.deepEqual((await get(own(beta))).body, { slurmExtraConfig: 'active' });
    refused(await put(own(beta), {}, { as: 'bob' }), 403, 'forbidden');
  });

  await t.test('a retired organization has no default any more to write: 409', async () => {
    await service.app.store.write(async ({ db }) => {
      const retired = { lifecycle_state: 'retired' as const };
      await db.updateTable('organizations').set(retired).where('id', '=', org).execute();
    });
    refused(await put(standard, { slurmExtraConfig: 'x' }), 409, 'invalid_state', /retired/);
    refused(await put(standard, {}, { as: 'bob' }), 403, 'forbidden');
    assert.equal((await get(standard)).status, 200);
  });
});

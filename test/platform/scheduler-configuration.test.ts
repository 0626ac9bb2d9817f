import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createCluster } from '../../src/store/clusters/clusters.ts';
import { findSchedulerState } from '../../src/store/clusters/slurm-configurations.ts';
import { alpha, becomes, beta, loginless, physicsWith, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { setCluster, silence } from './support.ts';

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

async function start(more: Lab = {}) {
  const permissions = ['clusters.configure' as const, 'clusters.read' as const];
  const dora = { email: 'dora@physics.example', role: 'member' as const, permissions };
  const service = await startTestApp({ lab: { ...physicsWith(dora), ...more } });
  const { org_id: org } = (await service.business('/me', { as: 'dora' })).body.memberships[0];
  const get = async (path: string) => (await service.platform(path, { as: 'dora' })).body;
  const cluster = (id = alpha) => get(`/clusters/${id}?businessOrgId=${org}`);
  const trail = () =>
    service.app.store.read
      .selectFrom('audit_entries')
      .selectAll()
      .where('operation', 'like', '%SchedulerConfiguration')
      .orderBy('seq')
      .execute();
  await becomes(async () => (await cluster()).spec.versionGeneration, 1);
  return {
    ...{ service, org, get, cluster, trail },
    own: (id = alpha) => `/clusters/${id}/scheduler-configuration?businessOrgId=${org}`,
    standard: `/organizations/${org}/scheduler-configuration`,
    put: (path: string, body?: unknown, as = 'dora') => service.platform(path, { as, method: 'PUT', body }),
    generation: async (id = alpha): Promise<number> => (await cluster(id)).spec.schedulerGeneration,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('a Slurm configuration is replaced whole, and each other one is a generation', async () => {
  await using opened = await start();
  const { service, org, own, get, put, cluster, generation, trail } = opened;
  const { store } = service.app;
  const record = async () =>
    (await service.business(`/organizations/${org}/clusters/${alpha}`, { as: 'dora' })).body.version;
  assert.deepEqual(await get(own()), {});
  const before = await cluster();
  const recorded = await record();
  const { status, body } = await put(own(), everything);
  assert.deepEqual([status, body, await get(own())], [200, everything, everything]);
  const after = await cluster();
  const { desiredGeneration, ...others } = before.spec;
  assert.deepEqual(after.spec, {
    ...{ ...others, schedulerGeneration: 1, desiredGeneration: desiredGeneration + 1 },
  });
  assert.equal(after.status.lifecycleVersion, before.status.lifecycleVersion);
  assert.ok(after.metadata.updatedAt > before.metadata.updatedAt);
  assert.equal(after.metadata.createdAt, before.metadata.createdAt);
  assert.equal(await record(), recorded + 1);

  // An identical one changes nothing in whatever order it is written, and is passed on once more.
  const putAt = async () => (await findSchedulerState(store.read, alpha)).configurationPutAt ?? '';
  const [entries, passedOn] = [(await trail()).length, await putAt()];
  service.advance(1_000);
  await put(own(), Object.fromEntries(Object.entries(everything).reverse()));
  const again = await put(own(), everything);
  assert.deepEqual([again.status, again.body, await cluster()], [200, everything, after]);
  assert.equal((await trail()).length, entries);
  assert.ok((await putAt()) > passedOn);

  assert.deepEqual((await put(own(), { slurmExtraConfig: '' })).body, { slurmExtraConfig: '' });
  assert.deepEqual([await get(own()), await generation()], [{ slurmExtraConfig: '' }, 2]);
  for (const empty of [{}, { prolog: {}, controllerEtc: {} }]) {
    assert.deepEqual([(await put(own(), empty)).body, await generation()], [{}, 3]);
  }
  assert.deepEqual([await get(own(beta)), await generation(beta)], [{}, 0], 'of another cluster');

  const texts = Array.from({ length: 8 }, (_, n) => `MaxArraySize=${n}`);
  const replies = await Promise.all(texts.map((slurmExtraConfig) => put(own(), { slurmExtraConfig })));
  assert.deepEqual(fieldsOf(fieldsOf(replies, 'body'), 'slurmExtraConfig'), texts, 'at the same instant');
  assert.equal(await generation(), 3 + texts.length);
  assert.ok(texts.includes((await get(own())).slurmExtraConfig));

  const { desiredGeneration: wanted } = (await cluster()).spec;
  const options = () => get(`/clusters/${alpha}/options?businessOrgId=${org}`);
  await becomes(async () => (await options()).scheduler.ready?.observedGeneration, wanted);

  // It can be read in any state of the cluster, and written until a release starts.
  await silence(service, beta);
  for (const state of ['provisioning', 'active', 'releasing', 'released']) {
    await setCluster(service, beta, { state });
    const reply = await put(own(beta), { slurmExtraConfig: state });
    if (state === 'provisioning' || state === 'active') assert.equal(reply.status, 200);
    else refused(reply, 409, 'invalid_state', new RegExp(state));
  }
  assert.deepEqual(await get(own(beta)), { slurmExtraConfig: 'active' });
  refused(await put(own(beta), {}, 'bob'), 403, 'forbidden');
});

// The rules themselves: test/domain/slurm-configuration.test.ts.
test('what breaks a rule or is no configuration is refused, and nothing is stored', async () => {
  await using opened = await start({ clusters: loginless });
  const { own, standard, get, put, cluster, trail, org } = opened;
  const before = await cluster();
  for (const path of [own(), standard]) {
    const body = { prolog: { 'a.sh': 'echo' } };
    refused(await put(path, body), 400, 'invalid_scheduler_config', /prolog.*a\.sh.*#!/);
    const unknown = [{ slurmConf: '' }, { slurm_partitions: '' }];
    const misshapen = [{ slurmExtraConfig: 1 }, { slurmExtraConfig: null }, { prolog: ['#!'] }];
    for (const none of [[], '"x"', 'null', ...unknown, ...misshapen, { prolog: { a: 1 } }])
      refused(await put(path, none), 422, 'invalid_request');
    refused(await put(path), 422, 'invalid_request', /missing/);
    refused(await put(path, '{"prolog":'), 400, 'invalid_request');
  }
  // Before rights, as the shape of a request is.
  refused(await put(own(), { prolog: { a: 'x' } }, 'eve'), 400, 'invalid_scheduler_config');
  refused(await put(own(), { nonsense: 1 }, 'eve'), 422, 'invalid_request');
  for (const field of [{ slurmPartitions }, { gresConf }])
    refused(await put(standard, field), 422, 'invalid_request', new RegExp(Object.keys(field).join()));
  assert.deepEqual([await cluster(), await get(standard), await trail()], [before, {}, []]);

  // A name that objects have is a file like any other.
  const odd = '{"prolog":{"__proto__":"#!/bin/sh","constructor":"#!"}}';
  assert.equal((await put(own(), odd)).status, 200);
  assert.equal(JSON.stringify(await get(own())), odd);
  // The largest lawful configuration is taken though JSON writes each byte as six.
  const file = `"#!${'\\u0001'.repeat(64 * KiB - 2)}"`;
  const text = `{"prolog":{"a":${file},"b":${file}},"epilog":{"a":${file}},"controllerEtc":{"a":${file}}}`;
  assert.ok(text.length > 1.4 * KiB * KiB);
  for (const path of [own(), standard]) {
    assert.equal((await put(path, text)).body.epilog?.a.length, 64 * KiB);
    refused(await put(path, `${text}${' '.repeat(KiB * KiB)}`), 400, 'invalid_request', /2 MiB/);
  }

  const entries = (await trail()).length;
  await put(own(), { slurmExtraConfig: 'a', epilog: { a: '#!' } });
  await put(standard, { slurmExtraConfig: 'a' });
  assert.deepEqual(
    fieldsOf((await trail()).slice(entries), 'target', 'cluster_id', 'organization_id', 'details'),
    [
      [alpha, alpha, org, 'Changed: controllerEtc, epilog, prolog, slurmExtraConfig'],
      [org, null, org, 'Changed: controllerEtc, epilog, prolog, slurmExtraConfig'],
    ],
  );
});

test('the default of an organization is what a new cluster starts with, and touches none that is there', async () => {
  await using opened = await start({ clusters: loginless });
  const { service, org, own, standard, get, put, cluster, generation } = opened;
  const before = [await cluster(alpha), await cluster(beta)];
  assert.deepEqual((await put(standard, { cgroupExtraConfig: 'x' })).body, { cgroupExtraConfig: 'x' });
  assert.deepEqual((await put(standard, forDefault)).body, forDefault);
  assert.deepEqual([await get(standard), await get(own(beta))], [forDefault, {}]);
  assert.deepEqual(fieldsOf([await cluster(alpha), await cluster(beta)], 'spec'), fieldsOf(before, 'spec'));
  const create = (name: string) => {
    const simulated = { computeNodes: 1, gpusPerNode: 1, applyMs: 0 };
    const wanted = { name, organizationId: org, scheduler: 'sunk' as const, simulated };
    return service.app.store.write((tx) => createCluster(tx, wanted));
  };
  const gamma = await create('gamma');
  assert.equal(await generation(gamma), 1);
  await put(standard, {});
  assert.deepEqual(await get(own(gamma)), forDefault, 'it keeps what it started with');
  const delta = await create('delta');
  assert.deepEqual([await get(own(delta)), await generation(delta)], [{}, 0]);

  await service.app.store.write(({ db }) =>
    db.updateTable('organizations').set({ lifecycle_state: 'retired' }).where('id', '=', org).execute(),
  );
  refused(await put(standard, { slurmExtraConfig: 'x' }), 409, 'invalid_state', /retired/);
  refused(await put(standard, {}, 'bob'), 403, 'forbidden');
  assert.deepEqual(await get(standard), {});
});

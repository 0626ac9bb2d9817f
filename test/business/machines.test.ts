import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompiledQuery } from 'kysely';
import type { MachineReport } from '../../src/domain/access/manifest.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { isUuid } from '../../src/domain/id.ts';
import { completeRelease, startRelease } from '../../src/store/clusters/clusters.ts';
import { listMachines, recordMachines } from '../../src/store/clusters/machines.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import type { Change } from '../../src/store/engine/index.ts';
import { findRow, updateRows } from '../../src/store/engine/rows.ts';
import {
  alpha,
  becomes,
  beta,
  eventually,
  loginless,
  physics,
  type Reply,
  startTestApp,
} from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { everyKind, openTestStore, requireRow, slurmReport } from '../support/store.ts';

const lab: Lab = {
  ...physics,
  clusters: loginless.map((cluster) => ({
    ...{ ...cluster, simulated: { computeNodes: 11, gpusPerNode: 8, applyMs: 20 } },
  })),
};

test('operators see machines as they were reported, admit them and keep them from work', async () => {
  await using service = await startTestApp({ lab });
  const { store } = service.app;
  const list = (clusterId = alpha) =>
    service.business(`/operator/clusters/${clusterId}/machines`, { as: 'root' });
  const set = (id: string, what: 'admit' | 'quarantine', as = 'root') =>
    service.write(`/operator/machines/${id}/${what}`, { as });
  const cluster = () => requireRow(store.read, 'clusters', { id: alpha });
  const audit = async () =>
    (await service.business('/operator/audit?order=newest&limit=1', { as: 'root' })).body.entries[0];

  // A machine that is reported for the first time gets a UUID and is registered.
  const { body } = await eventually(list, (reply) => reply.body.machines?.length === 11);
  const names = Array.from({ length: 11 }, (_, index) => `alpha-${index + 1}`);
  assert.deepEqual(fieldsOf(body.machines, 'name'), names, 'by name, as people count');
  assert.equal(new Set(fieldsOf(body.machines, 'id')).size, 11);
  const { id, created_at, updated_at, observed_at, ...rest } = body.machines[0];
  assert.ok(isUuid(id));
  for (const time of [created_at, updated_at, observed_at]) assert.ok(Date.parse(time));
  assert.deepEqual(
    [rest.cluster_id, rest.name, rest.lifecycle_state, rest.gpu_count, rest.ready, rest.phase],
    [alpha, 'alpha-1', 'registered', 8, true, 'idle'],
  );

  assert.equal((await set(id, 'admit', 'ada')).status, 403);
  const { target, cluster_id, organization_id } = await audit();
  const { organization_id: organization } = await cluster();
  assert.deepEqual([target, cluster_id, organization_id], [id, alpha, organization], 'a refusal names them');
  for (const [what, from, to] of [
    ['admit', 'registered', 'admitted'],
    ['quarantine', 'admitted', 'quarantined'],
    ['admit', 'quarantined', 'admitted'],
  ] as const) {
    const seen: Change[] = [];
    using _ = { [Symbol.dispose]: store.onChange(everyKind, (changes) => void seen.push(...changes)) };
    const before = await cluster();
    const moved = await set(id.toUpperCase(), what);
    assert.deepEqual([moved.status, moved.body.id, moved.body.lifecycle_state], [200, id, to]);
    const after = await cluster();
    assert.equal(after.desired_generation, before.desired_generation + 1);
    assert.ok(after.version > before.version);
    assert.ok(seen.some((change) => change.kind === 'cluster' && change.clusterId === alpha));
    const entry = await audit();
    assert.deepEqual([entry.result, entry.details], ['done', `alpha-1: ${from} → ${to}`]);
    const again = await set(id, what);
    assert.deepEqual([again.status, again.body.lifecycle_state], [200, to]);
    assert.equal((await cluster()).desired_generation, after.desired_generation);
  }
  // Two at the same instant count once.
  const { desired_generation: before } = await cluster();
  const last = body.machines.at(-1).id;
  for (const { status, body: reply } of await Promise.all([1, 2].map(() => set(last, 'quarantine')))) {
    assert.deepEqual([status, reply.lifecycle_state], [200, 'quarantined']);
  }
  assert.equal((await cluster()).desired_generation, before + 1);
  const moved = (await listMachines(store.read, alpha)).filter((one) => one.lifecycleState !== 'registered');
  assert.deepEqual(fieldsOf(moved, 'id').sort(), [id, last].sort());
  // The cluster applies the new configuration.
  const observation = () => findRow(store.read, 'observations', { cluster_id: alpha });
  await becomes(async () => (await observation())?.desired_generation, before + 1);

  const [other] = await listMachines(store.read, beta);
  await store.write(({ db }) => updateRows(db, 'clusters', { id: beta }, { state: 'releasing' }));
  refused(await set(other?.id ?? '', 'admit'), 409, 'invalid_state');

  // What the cluster said of a machine is shown, and nothing else.
  const known = { gpuModel: 'H100', gpuCount: 4, cpuCores: 96, memoryGib: 1024, ibSpeed: '400 Gb/sec' };
  const reports = [machine('one', known), machine('two', { ready: false, phase: 'down' })];
  // The cluster itself may report in between.
  const shown = await eventually(
    async () => {
      await store.write((tx) => recordMachines(tx, beta, reports));
      return (await list(beta)).body.machines;
    },
    ({ length }) => length === 2,
  );
  const common = { cluster_id: beta, lifecycle_state: 'registered' };
  const of = ({ id: _, created_at: _made, updated_at: _set, observed_at: _at, ...fields }: Reply['body']) =>
    fields;
  assert.deepEqual(shown.map(of), [
    {
      ...{ ...common, name: 'one', gpu_model: 'H100', gpu_count: 4, cpu_cores: 96, memory_gib: 1024 },
      ...{ ready: true, phase: 'idle' },
    },
    { ...common, name: 'two', ready: false, phase: 'down' },
  ]);
});

const machine = (name: string, more: Partial<MachineReport> = {}): MachineReport => ({
  name,
  ready: true,
  phase: 'idle',
  ...more,
});
const start = Date.parse('2030-01-01T00:00:00.000Z');
const at = (minutes: number) => start + minutes * 60_000;

test('a machine no longer reported is retired, and is the same when it comes back', async () => {
  await using store = await openTestStore(physics);
  const record = (minutes: number, ...reports: MachineReport[]) =>
    store.write((tx) => recordMachines({ ...tx, now: at(minutes) }, alpha, reports));
  const list = () => listMachines(store.read, alpha);
  await record(0, machine('a'), machine('b'));
  const [a] = (await list()).filter(({ name }) => name === 'a');
  await store.write(async ({ db }) => {
    const quarantined = { lifecycle_state: 'quarantined' as const };
    await updateRows(db, 'machines', { id: a?.id ?? '' }, quarantined);
  });
  await record(1, machine('b'));
  await record(2, machine('b'));
  assert.deepEqual(fieldsOf(await list(), 'name', 'reportGeneration'), [['b', 3]]);
  const gone = await store.read.selectFrom('machines').selectAll().where('name', '=', 'a').execute();
  assert.deepEqual(fieldsOf(gone, 'id', 'retired_at', 'observed_at', 'report_generation'), [
    [a?.id, new Date(at(1)).toISOString(), new Date(at(0)).toISOString(), 1],
  ]);
  await record(3, machine('a', { phase: 'drained', ready: false }), machine('b'));
  const [back] = (await list()).filter(({ name }) => name === 'a');
  assert.deepEqual(back, {
    ...a,
    lifecycleState: 'quarantined',
    report: machine('a', { phase: 'drained', ready: false }),
    reportGeneration: 2,
    observedAt: new Date(at(3)).toISOString(),
    updatedAt: new Date(at(3)).toISOString(),
  });
});

test('a name is one machine a cluster, and a machine of another cluster is left alone', async () => {
  await using store = await openTestStore(physics);
  await store.write(async (tx) => {
    await recordMachines({ ...tx, now: at(0) }, alpha, [machine('a'), machine('a', { phase: 'mixed' })]);
    await recordMachines({ ...tx, now: at(0) }, beta, [machine('a')]);
    await recordMachines({ ...tx, now: at(1) }, alpha, []);
  });
  assert.deepEqual(await listMachines(store.read, alpha), []);
  assert.equal((await listMachines(store.read, beta)).length, 1);
});

test('a report that says nothing new writes the machines of a cluster with one statement', async () => {
  await using store = await openTestStore(physics);
  const reports = Array.from({ length: 100 }, (_, index) => machine(`n${index}`));
  await store.write((tx) => recordMachines({ ...tx, now: at(0) }, alpha, reports));
  const updates = await store.write(async (tx) => {
    let count = 0;
    const db = new Proxy(tx.db, {
      get(target, name) {
        if (name === 'updateTable' || name === 'insertInto' || name === 'deleteFrom') count++;
        // Prepared queries come as they are.
        if (name === 'executeQuery') {
          return (query: CompiledQuery) => {
            if (!query.sql.startsWith('select')) count++;
            return target.executeQuery(query);
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await recordMachines({ ...tx, db, now: at(1) }, alpha, reports);
    return count;
  });
  assert.equal(updates, 1);
  const machines = await listMachines(store.read, alpha);
  const times = new Set(machines.map((one) => `${one.observedAt} ${one.reportGeneration}`));
  assert.deepEqual([...times], ['2030-01-01T00:01:00.000Z 2']);
});

test('machines released from the cluster are not listed', async () => {
  await using store = await openTestStore(physics);
  await store.write((tx) => recordMachines({ ...tx, now: at(0) }, alpha, [machine('a')]));
  await store.write((tx) => startRelease({ ...tx, now: at(1) }, { clusterId: alpha, commandId: null }));
  assert.equal((await listMachines(store.read, alpha)).length, 1, 'until the cluster is released');
  await store.write((tx) => completeRelease({ ...tx, now: at(2) }, alpha));
  assert.deepEqual(await listMachines(store.read, alpha), []);
});

test('a control plane that does not answer retires no machine', async () => {
  await using store = await openTestStore(physics);
  const report = slurmReport({ machines: [machine('a')] });
  const names = async () => (await listMachines(store.read, alpha)).map(({ name }) => name);
  await recordSlurmReport(store, alpha, report);
  await recordSlurmReport(store, alpha, { ...report, controlPlaneReady: false, machines: [] });
  assert.deepEqual(await names(), ['a']);
  await recordSlurmReport(store, alpha, { ...report, machines: [] });
  assert.deepEqual(await names(), []);
});

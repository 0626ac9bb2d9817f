/** What Platform says of Slurm configurations besides themselves: who set them and why, what one would come to, how far it has come. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { listRows } from '../../src/store/engine/rows.ts';
import { organizationOf } from '../business/organization.ts';
import { alpha, becomes, beta, eventually, type Reply, startTestApp, type TestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { setCluster, setSimulated } from './support.ts';

let service: TestApp;
let org: string;
before(async () => {
  service = await startTestApp();
  org = (await service.business('/me', { as: 'ada' })).body.memberships[0].org_id;
  await eventually(
    () => service.platform(`/clusters/${alpha}?businessOrgId=${org}`, { as: 'ada' }),
    ({ body }) => body.status.lifecycleState === 'active',
  );
});
after(() => service[Symbol.asyncDispose]());

const of = (rest = '') => `/clusters/${alpha}/scheduler-configuration${rest}?businessOrgId=${org}`;
const get = (rest = '') => service.platform(of(rest), { as: 'ada' });
const put = (body: object, headers: Record<string, string> = {}): Promise<Reply> =>
  service.platform(of(), { as: 'ada', method: 'PUT', body, headers });
const check = (body: object, as = 'ada') => service.platform(of('/check'), { as, method: 'POST', body });
const status = async () => (await get('/status')).body;
const settled = (state: string) => eventually(status, (one) => one.state === state);
const entries = async () =>
  listRows(service.app.store.read, 'audit_entries', { operation: 'setSchedulerConfiguration' }, 'seq');

test('a configuration has a number, and If-Match refuses what would undo another person’s change', async () => {
  assert.equal((await get()).headers.get('etag'), '"0"');
  assert.equal((await status()).state, 'never_written');
  const first = await put({ slurmExtraConfig: 'A=1' }, { 'If-Match': '"0"', 'Audit-Reason': 'größer' });
  assert.deepEqual([first.status, first.headers.get('etag')], [200, '"1"']);
  assert.equal((await get()).headers.get('etag'), '"1"');
  refused(
    await put({ slurmExtraConfig: 'B=1' }, { 'If-Match': '"0"' }),
    412,
    'precondition_failed',
    /number 1/,
  );
  assert.equal((await entries()).at(-1)?.result, 'refused: precondition_failed');
  // What stands already undoes nothing.
  assert.equal((await put({ slurmExtraConfig: 'A=1' }, { 'If-Match': '"0"' })).headers.get('etag'), '"1"');
  assert.equal((await put({ slurmExtraConfig: 'A=2' }, { 'If-Match': '*' })).headers.get('etag'), '"2"');
  assert.equal((await put({ slurmExtraConfig: 'A=3' }, { 'If-Match': '"9", "2"' })).status, 200);
  for (const tag of ['3', 'W/"3"', '"3', '" "', '']) {
    refused(await put({}, { 'If-Match': tag }), 400, 'invalid_request', /If-Match/);
  }
  refused(await put({}, { 'Audit-Reason': 'x'.repeat(501) }), 400, 'invalid_request', /Audit-Reason/);
  const tooLong = { 'If-Match': '*', 'Idempotency-Key': 'x'.repeat(201) };
  refused(await put({}, tooLong), 400, 'invalid_request', /Idempotency-Key/);
});

test('the history has who, why and what, and each version as it was', async () => {
  const { items } = (await get('/versions')).body;
  assert.deepEqual(fieldsOf(items, 'generation', 'reason', 'changes'), [
    [3, '', [{ field: 'slurmExtraConfig', change: 'changed' }]],
    [2, '', [{ field: 'slurmExtraConfig', change: 'changed' }]],
    [1, 'größer', [{ field: 'slurmExtraConfig', change: 'added' }]],
  ]);
  assert.equal(items[0].author.email, 'ada@physics.example');
  assert.deepEqual((await get('/versions/1')).body, { slurmExtraConfig: 'A=1' });
  assert.deepEqual((await get('/versions/3')).body, (await get()).body);
  refused(await get('/versions/4'), 404, 'not_found');
  refused(await get('/versions/0x1'), 422, 'invalid_request');
});

test('sent again under its key it is done once, whatever became of it since', async () => {
  const headers = { 'Idempotency-Key': 'one', 'Audit-Reason': 'why', 'If-Match': '"3"' };
  const own = { slurmExtraConfig: 'mine=1' };
  assert.equal((await put(own, headers)).headers.get('etag'), '"4"');
  await put({ slurmExtraConfig: 'theirs=1' });
  const again = await put(own, headers);
  assert.deepEqual([again.status, again.headers.get('etag'), again.body], [200, '"4"', own]);
  assert.deepEqual((await get()).body, { slurmExtraConfig: 'theirs=1' });
  assert.equal((await entries()).filter(({ reason }) => reason === 'why').length, 1);
  refused(await put({}, headers), 409, 'idempotency_mismatch');
  const both = await Promise.all(
    [1, 2, 3].map(() =>
      put({ slurmExtraConfig: 'twice=1' }, { ...headers, 'Idempotency-Key': 'two', 'If-Match': '*' }),
    ),
  );
  assert.deepEqual(
    both.map((one) => one.headers.get('etag')),
    ['"6"', '"6"', '"6"'],
  );
});

test('without If-Match it is done each time, whatever key it is sent with', async () => {
  const headers = { 'Idempotency-Key': 'three' };
  for (const slurmExtraConfig of ['first=1', 'second=1', 'first=1']) {
    assert.deepEqual((await put({ slurmExtraConfig }, headers)).body, { slurmExtraConfig });
    assert.deepEqual((await get()).body, { slurmExtraConfig });
  }
});

test('a check says every rule that is broken, what would change, and what that restarts', async () => {
  await put({
    slurmPartitions: 'PartitionName=old Nodes=ALL\nPartitionName=gpu Nodes=ALL',
    prolog: { a: '#!' },
  });
  const seen = (await check({ slurmPartitions: 'PartitionName=gpu Nodes=ALL', prolog: { a: '#!', b: '#!' } }))
    .body;
  assert.deepEqual(seen.changes, [
    { field: 'prolog', file: 'b', change: 'added' },
    { field: 'slurmPartitions', change: 'changed' },
  ]);
  assert.deepEqual([seen.faults, seen.removedPartitions], [[], ['old']]);
  assert.deepEqual([seen.restarts, seen.rollout, seen.endedJobs], [['login', 'controller'], 'restart', 0]);
  const job = { id: '7', user: 'bob', name: 'train', machines: ['alpha-1'] };
  await setSimulated(service, alpha, { runningJobs: [job] });
  const compute = await eventually(
    async () => (await check({ computeS6Packages: 'x' })).body,
    ({ endedJobs }) => endedJobs === 1,
  );
  assert.deepEqual(compute.restarts, ['login', 'controller', 'compute']);
  const broken = { prolog: { a: 'echo', 'b c': '#!' }, controllerEtc: { 'slurm.conf': '' } };
  assert.deepEqual(fieldsOf((await check(broken)).body.faults, 'field', 'file'), [
    ['prolog', 'a'],
    ['prolog', 'b c'],
    ['controllerEtc', 'slurm.conf'],
  ]);
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`f${n}`, 'x']));
  const bounded = (await check({ prolog: many })).body;
  assert.deepEqual([bounded.faults.length, bounded.changes.length, bounded.changeCount], [50, 200, 502]);
  const odd = (await check({ prolog: { constructor: '#!' } })).body.changes;
  assert.equal(odd.find(({ file }: { file?: string }) => file === 'constructor').change, 'added');
  assert.deepEqual((await check(JSON.parse('{"prolog":{"__proto__":"x"}}'))).status, 200);
});

const named = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [n.toString(36).padStart(4, '_'), '']));

test('very many files are refused before they are parsed, and those of more than 1,000 before they are looked at', async () => {
  const most = { controllerEtc: named(1000) };
  const commas = { slurmExtraConfig: '",:[{\\"\\'.repeat(10_000) };
  for (const lawful of [most, commas]) {
    const { status, body } = await check(lawful);
    assert.deepEqual([status, body.faults], [200, []]);
  }
  const { faults } = (await check({ ...most, prolog: { a: 'echo' } })).body;
  assert.match(faults[0].message, /1001 files.*at most 1000/);
  assert.equal(faults.length, 1);
  const more = { controllerEtc: named(1001) };
  const standard = `/organizations/${org}/scheduler-configuration`;
  const putDefault = (body: object) => service.platform(standard, { as: 'ada', method: 'PUT', body });
  for (const send of [put, putDefault]) {
    refused(await send(more), 400, 'invalid_scheduler_config', /at most 1000/);
  }
  for (const send of [put, putDefault, check]) {
    refused(await send({ controllerEtc: named(205_000) }), 422, 'invalid_request', /more than 4000/);
  }
});

test('the history says how many changes there were where it does not name them all', async () => {
  await put({ controllerEtc: named(300) });
  const [newest] = (await get('/versions')).body.items;
  // The partitions and the prolog of before went.
  assert.deepEqual([newest.changes.length, newest.changeCount], [200, 302]);
});

test('who asks too often waits, and no one else does', async () => {
  await (await organizationOf(service)).permit('ada', 'bob', ['clusters.configure']);
  const replies = await Promise.all(Array.from({ length: 60 }, () => check({}, 'bob')));
  const late = replies.filter((one) => one.status === 429);
  assert.ok(late.length > 0 && late.every(({ body }) => body.retryable), `${late.length}`);
  await becomes(async () => (await check({}, 'bob')).status, 200);
});

test('what a cluster does not take is refused in words, and what was there stays in force', async () => {
  await put({ slurmPartitions: 'PartitionName=gpu Nodes=alpha-[1-2]' });
  const { generation: good } = await settled('in_force');
  await put({ slurmPartitions: 'PartitionName=gpu Nodes=alpha-[1-3]' });
  const bad = await settled('refused');
  assert.match(bad.message, /Invalid node name alpha-3 in partition gpu/);
  assert.deepEqual([bad.generation, bad.inForceGeneration], [good + 1, good]);
  // People do not wait for it.
  const { access } = await eventually(
    async () => ({
      access: (await service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'ada' }))
        .body,
    }),
    (one) => one.access.observation_current === true,
  );
  assert.equal(access.reason, 'no_keys');
  await put({ slurmPartitions: 'Parti' });
  assert.match(
    (await eventually(status, ({ message = '' }) => /Parsing error/.test(message))).message,
    /Parti/,
  );
  await put({});
  assert.equal((await settled('in_force')).inForceGeneration, good + 3);
  await setSimulated(service, alpha, { silent: true });
  assert.match((await settled('unknown')).message, /does not answer/);
  await setSimulated(service, alpha, { silent: false, failure: 'No space left on device.' });
  await settled('in_force');
  await put({ slurmExtraConfig: 'C=1' });
  assert.equal((await settled('failed')).message, 'No space left on device.');
  await setSimulated(service, alpha, { failure: undefined });
  await settled('in_force');
});

test('the history is bounded by number and by size, and the newest stays', async () => {
  for (let n = 0; n < 105; n += 1) await put({ slurmExtraConfig: `N=${n}` });
  const { items } = (await get('/versions')).body;
  assert.equal(items.length, 100);
  for (let n = 0; n < 10; n += 1) await put({ gresConf: `${n}${'x'.repeat(1.9 * 2 ** 20)}` });
  const kept = (await get('/versions')).body.items as { bytes: number; generation: number }[];
  assert.equal(kept.length, 8);
  assert.deepEqual((await get()).headers.get('etag'), `"${kept[0]?.generation}"`);
});

test('a cluster without Slurm keeps one, and does not say that it is on its way', async () => {
  const path = (rest = '') => `/clusters/${beta}/scheduler-configuration${rest}?businessOrgId=${org}`;
  const body = { slurmExtraConfig: 'A=1' };
  const checked = await service.platform(path('/check'), { as: 'ada', method: 'POST', body });
  assert.deepEqual([checked.status, checked.body.hasSlurm, checked.body.restarts], [200, false, []]);
  assert.equal((await service.platform(path(), { as: 'ada', method: 'PUT', body })).status, 200);
  assert.equal((await service.platform(path('/status'), { as: 'ada' })).body.state, 'no_slurm');
});

test('a cluster out of service takes none, and says so to who asks what it would come to', async () => {
  await setCluster(service, alpha, { state: 'releasing' });
  refused(await check({}), 409, 'invalid_state', /releasing/);
  assert.equal((await status()).state, 'not_in_service');
  assert.equal((await get('/versions')).status, 200);
});

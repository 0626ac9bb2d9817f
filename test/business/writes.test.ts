/**
 * The rules of all operations, proven of each: who may, and of writes what a refusal stores, the two headers, unknown IDs,
 * idempotency, and the entry in the audit trail. What an operation does beyond them is proven where its area is.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DocumentOperation, loadDocument, operationsOf } from '../../src/api/http/document.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { alpha, becomes, beta, type Reply, startTestApp, type TestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import {
  addKey,
  type Given,
  lab,
  type Name,
  people,
  type Row,
  reads,
  rows,
  somePassword,
  type Wish,
} from './writes-table.ts';

type Api = 'business' | 'platform';
interface Operation extends DocumentOperation {
  api: Api;
}
const documented: Operation[] = (['business', 'platform'] as const).flatMap((api) =>
  operationsOf(loadDocument(api)).map((one) => ({ ...one, api })),
);
const operations = documented.filter(({ method }) => method !== 'get');
// Those of Platform: test/platform/routes.test.ts.
const readings = documented.filter(({ method, api }) => method === 'get' && api === 'business');

test('every operation of the documents is in the tables, and nothing else', () => {
  assert.deepEqual(Object.keys(rows).sort(), operations.map(({ operationId }) => operationId).sort());
  assert.deepEqual(Object.keys(reads).sort(), readings.map(({ operationId }) => operationId).sort());
});

test('reads', async () => {
  await using service = await startTestApp({ lab });
  const given = await prepare(service);
  const usual: Record<string, string> = {
    ...{ orgID: given.org, clusterID: alpha, userID: given.ids.get('bob') ?? '' },
    keyID: await addKey(given),
  };
  for (const { operationId, route } of readings) {
    const row = reads[operationId];
    const path = route.replaceAll(/:(\w+)/g, (_, name) => usual[name] ?? name) + (row?.query?.(given) ?? '');
    refused(await service.business(path), 401, 'unauthorized');
    for (const as of people) {
      const expected = row?.may.includes(as) ? (row.answers ?? 200) : (row?.refused?.[as] ?? 403);
      const { status, body } = await service.business(path, { token: given.tokens.get(as) ?? '' });
      assert.equal(status, expected, `${operationId} as ${as}: ${JSON.stringify(body)}`);
      const code = { 403: 'forbidden', 404: 'not_found', 409: 'invalid_state' }[status];
      assert.equal(body.code, code, operationId);
    }
  }
});

test('writes', async (t) => {
  await using service = await startTestApp({ lab });
  const given = await prepare(service);
  for (const operation of operations) {
    const row = rows[operation.operationId];
    if (!row) continue;
    await t.test(operation.operationId, async () => {
      // Few refusals of a person have entries of their own in a minute.
      service.advance(60_000);
      const [as = 'ada'] = row.may;
      const on = { service, given, operation, row, as, wish: await row.wish(given, as) };
      await proveRefusals(on);
      await proveHeaders(on);
      if (row.answers === undefined && !row.takesAnyId) await proveUnknown(on);
      if (row.writesNothing) return provePlan(on);
      const first = await proveDone(on);
      if (operation.isCommand && row.answers === undefined) await proveIdempotency(on, first);
    });
  }
  const trail = await service.app.store.read.selectFrom('audit_entries').selectAll().execute();
  assert.ok(!JSON.stringify(trail).includes(somePassword), 'no password is in the trail');
});

interface On {
  service: TestApp;
  given: Given;
  operation: Operation;
  row: Row;
  /** The first of those who may, and what they ask for once all refusals are proven to have left nothing. */
  as: Name;
  wish: Wish;
}

async function prepare(service: TestApp): Promise<Given> {
  let count = 0;
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const ids = new Map<string, string>();
  const tokens = new Map<string, string>();
  for (const as of people) {
    const token = await service.issuer.token(as, {}, 86_400);
    tokens.set(as, token);
    ids.set(as, (await service.business('/me', { token })).body.user.id);
  }
  for (const id of [alpha, beta]) {
    const path = `/organizations/${org}/clusters/${id}`;
    await becomes(async () => (await service.business(path, { as: 'ada' })).body.state, 'active');
  }
  const next = () => ++count;
  return {
    ...{ service, org, ids, tokens, next },
    async make(as, path, body, method = 'POST') {
      const token = tokens.get(as) ?? '';
      const reply = await service.write(path, { token, method, ...(body && { body }) });
      assert.ok(reply.status < 300, `${path}: ${JSON.stringify(reply.body)}`);
      return reply.body;
    },
  };
}

/** Sends what is wished for, with both headers where the operation takes them. */
function send(
  { service, given, operation: { api, method, route, isCommand } }: On,
  { path = {}, query = '', body }: Wish,
  { as, ...call }: { as?: Name; token?: string; headers?: Record<string, string> },
): Promise<Reply> {
  const token = as && given.tokens.get(as);
  const usual: Record<string, string> = { orgID: given.org, orgId: given.org, clusterId: alpha, ...path };
  const address = route.replaceAll(/:(\w+)/g, (_, name) => usual[name] ?? name) + query;
  const headers = isCommand ? { 'Idempotency-Key': `w-${given.next()}`, 'Audit-Reason': 'a rule' } : {};
  return service[api](address, {
    ...(token && { token }),
    ...call,
    method: method.toUpperCase(),
    ...(body && { body }),
    headers: { ...headers, ...call.headers },
  });
}

/** What is stored of writes: how many there were, and the entries of the operation since. */
async function record({ service, operation }: On) {
  const { read } = service.app.store;
  const commands = await read.selectFrom('commands').select('id').execute();
  const entries = await listRows(read, 'audit_entries', { operation: operation.answeredBy }, 'seq');
  return { commands: commands.length, entries };
}

async function proveRefusals(on: On): Promise<void> {
  const { given, row, operation, wish } = on;
  for (const token of [undefined, 'nonsense']) {
    const { status, body } = await send(on, wish, token ? { token } : {});
    assert.deepEqual([status, body.code], [401, 'unauthorized']);
    assert.deepEqual(Object.keys(body).sort(), ['code', 'message', 'retryable']);
  }
  for (const as of people) {
    if (row.may.includes(as)) continue;
    const before = await record(on);
    const reply = await send(on, wish, { as });
    const expected = row.refused?.[as] ?? 403;
    assert.equal(reply.status, expected, `${as}: ${JSON.stringify(reply.body)}`);
    const after = await record(on);
    assert.equal(after.commands, before.commands, `${as}: nothing is stored`);
    const entries = after.entries.slice(before.entries.length);
    const noted = entries.map((one) => [one.actor_user_id, one.command_id, one.result]);
    const entry = [given.ids.get(as), null, `refused: ${reply.body.code}`];
    assert.deepEqual(noted, row.writesNothing ? [] : [entry], `${as}: an entry says so`);
    if (operation.isCommand) assert.equal(entries[0]?.reason, 'a rule');
  }
}

const faults: [string, Record<string, string>][] = [
  ['Idempotency-Key', { 'Idempotency-Key': '' }],
  ['Idempotency-Key', { 'Idempotency-Key': '   ' }],
  ['Idempotency-Key', { 'Idempotency-Key': 'k'.repeat(201) }],
  ['Audit-Reason', { 'Audit-Reason': '' }],
  ['Audit-Reason', { 'Audit-Reason': 'r'.repeat(501) }],
];

async function proveHeaders(on: On): Promise<void> {
  if (!on.operation.isCommand) return;
  const { as, wish } = on;
  const before = await record(on);
  const field = on.operation.errorField ? 'error' : 'message';
  for (const [name, headers] of faults) {
    const { status, body } = await send(on, wish, { as, headers });
    assert.deepEqual([status, body.code, body.retryable], [400, 'invalid_request', false]);
    assert.deepEqual(Object.keys(body).sort(), ['code', field, 'retryable'].sort());
    assert.ok(body[field].includes(name), JSON.stringify(body));
  }
  assert.deepEqual(await record(on), before, 'nothing is stored, not even in the audit trail');
}

const ulid = '01JD0000000000000000000000';
const unknown: Record<string, string> = {
  ...{ orgID: `org_${ulid}`, orgId: `org_${ulid}`, userID: `user_${ulid}`, keyID: `ssh_key_${ulid}` },
  ...{ requestID: `access_request_${ulid}`, grantID: `grant_${ulid}`, purchaseID: `purchase_${ulid}` },
  ...{ sessionID: 'none', team: 'None', clusterID: '00000000-0000-4000-8000-000000000000' },
  ...{ machineID: '00000000-0000-4000-8000-000000000000', clusterId: '00000000-0000-4000-8000-000000000000' },
};

async function proveUnknown(on: On): Promise<void> {
  const { row, operation, as, wish } = on;
  for (const [, name = ''] of operation.route.matchAll(/:(\w+)/g)) {
    for (const id of [unknown[name] ?? '', 'x'.repeat(10_000)]) {
      // What cannot be an ID at all is another refusal there.
      if (id.startsWith('x') && (name === 'keyID' || name === 'clusterId')) continue;
      const reply = await send(on, { ...wish, path: { ...wish.path, [name]: id } }, { as });
      const expected = row.unknown?.[name] ?? 404;
      assert.equal(reply.status, expected, `${name} ${id.slice(0, 40)}: ${JSON.stringify(reply.body)}`);
    }
  }
}

async function provePlan(on: On): Promise<void> {
  const { given, row } = on;
  for (const as of row.may) {
    const wish = await row.wish(given, as);
    const before = await record(on);
    assert.equal((await send(on, wish, { as })).status, row.answers ?? 200, as);
    assert.deepEqual(await record(on), before);
  }
}

/** Each who may does it, and one entry says so. Returns what the first was answered. */
async function proveDone(on: On): Promise<Reply> {
  const { given, row, operation } = on;
  const expected = row.answers ?? (operation.creates ? 201 : 200);
  const replies: Reply[] = [];
  for (const as of row.may) {
    const wish = as === on.as ? on.wish : await row.wish(given, as);
    const before = await record(on);
    const reply = await send(on, wish, { as, headers: sameKey(on) });
    assert.equal(reply.status, expected, `${as}: ${JSON.stringify(reply.body)}`);
    const after = await record(on);
    const [entry, ...more] = after.entries.slice(before.entries.length);
    assert.deepEqual(more, []);
    const result = row.answers ? `refused: ${reply.body.code}` : 'done';
    const reason = operation.isCommand ? 'a rule' : '';
    assert.deepEqual(
      [entry?.operation, entry?.actor_user_id, entry?.reason, entry?.result, entry?.source_address],
      [operation.answeredBy, given.ids.get(as), reason, result, '127.0.0.1'],
      as,
    );
    assert.equal(entry?.command_id !== null, operation.isCommand && result === 'done');
    replies.push(reply);
  }
  const [first] = replies;
  assert.ok(first);
  return first;
}

/** A key is its person's: each of those who may uses the same one. */
function sameKey({ operation }: On): Record<string, string> {
  return operation.isCommand ? { 'Idempotency-Key': operation.operationId } : {};
}

async function proveIdempotency(on: On, first: Reply): Promise<void> {
  const { given, row, operation, as, wish } = on;
  const headers = sameKey(on);
  const before = await record(on);
  const again = await send(on, wish, { as, headers: { ...headers, 'Audit-Reason': 'another' } });
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.deepEqual(await record(on), before, 'nothing is written, not even in the audit trail');
  if (!row.may.includes('bob')) {
    await withoutRights(on, async () => {
      const { status } = await send(on, wish, { as, headers });
      assert.ok([403, 404].includes(status), `rights are asked for again: ${status}`);
    });
  }
  const other = await row.wish(given, as);
  const { commands } = await record(on);
  const { status, body } = await send(on, other, { as, headers });
  assert.deepEqual([status, body.code, body.retryable], [409, 'idempotency_mismatch', false]);
  const field = operation.errorField ? 'error' : 'message';
  assert.deepEqual(Object.keys(body).sort(), ['code', field, 'retryable'].sort());
  assert.equal((await record(on)).commands, commands);
}

/** Meanwhile the person is a member without permissions, and no staff. */
async function withoutRights({ service, given, as }: On, body: () => Promise<void>): Promise<void> {
  const { store } = service.app;
  const userId = given.ids.get(as) ?? '';
  const staff = await listRows(store.read, 'staff_permissions', { user_id: userId });
  await store.write(async ({ db }) => {
    await db.deleteFrom('staff_permissions').where('user_id', '=', userId).execute();
    await db.updateTable('memberships').set({ role: 'member' }).where('user_id', '=', userId).execute();
  });
  await body();
  await store.write(async ({ db }) => {
    if (staff.length > 0) await db.insertInto('staff_permissions').values(staff).execute();
    const role = as === 'ada' ? 'owner' : 'member';
    await db.updateTable('memberships').set({ role }).where('user_id', '=', userId).execute();
  });
}

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { physics, type Reply, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { requireRow } from '../support/store.ts';

test('idempotency of Business writes', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const register = (as: string, public_key: string, key: string, path = '/me/ssh-keys') =>
    service.write(path, { as, body: { public_key }, key });
  const revoke = (as: string, id: string, key: string) =>
    service.write(`/me/ssh-keys/${id}/revoke`, { as, key });
  const list = async (as: string) => (await service.business('/me/ssh-keys', { as })).body;
  const statuses = (replies: Reply[]) => fieldsOf(replies, 'status').sort();

  // Another comment and the deprecated route are the same request; another body or operation is not.
  const alias = '/organizations/anything/ssh-keys';
  const material = newPublicKey();
  const made = await register('ada', material, 'one');
  assert.equal(made.status, 201);
  for (const replay of [
    await register('ada', `${material} elsewhere`, 'one'),
    await register('ada', material, 'one', alias),
  ])
    assert.deepEqual([replay.status, replay.body], [200, made.body]);
  refused(await register('ada', newPublicKey(), 'one', alias), 409, 'idempotency_mismatch');
  refused(await revoke('ada', made.body.ssh_key.id, 'one'), 409, 'idempotency_mismatch');
  assert.deepEqual(await list('ada'), { keys: [made.body.ssh_key], generation: 1 });

  // A refused request leaves its key free, and a replay has its first result, whatever became of it since.
  assert.equal((await register('bob', material, 'refused')).status, 409);
  assert.equal((await register('bob', newPublicKey(), 'refused')).status, 201);
  await revoke('ada', made.body.ssh_key.id, 'revoke');
  const late = await register('ada', material, 'one');
  assert.deepEqual([late.status, late.body], [200, made.body]);
  assert.equal((await list('ada')).keys[0].lifecycle_state, 'revoked');

  // At the same instant, identical requests make one change, and two people do not register one key.
  const { generation } = await list('ada');
  const key = newPublicKey();
  const replies = await Promise.all(Array.from({ length: 8 }, () => register('ada', key, 'at once')));
  assert.deepEqual(statuses(replies), [...Array(7).fill(200), 201]);
  for (const { body } of replies) assert.deepEqual(body, replies[0]?.body);
  assert.equal((await list('ada')).generation, generation + 1);
  for (let round = 0; round < 5; round++) {
    const wanted = newPublicKey();
    const both = await Promise.all(['ada', 'bob'].map((as) => register(as, wanted, `race ${round}`)));
    assert.deepEqual(statuses(both), [201, 409]);
  }
});

test('a header that is there twice is refused; lengths are counted in characters, and a reason is stored as it was sent', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { host, hostname, port } = new URL(service.businessUrl);
  const headers = Object.entries({
    ...{ Host: host, Authorization: `Bearer ${await service.issuer.token('ada')}`, 'Audit-Reason': 'r' },
    ...{ 'Content-Type': 'application/json', 'Content-Length': '18' },
  }).flat();
  headers.push('Idempotency-Key', 'one', 'Idempotency-Key', 'two');
  const sent = request({ hostname, port, path: '/me/ssh-keys', method: 'POST', headers });
  sent.end(JSON.stringify({ public_key: 'x' }));
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(reply.statusCode, 400);
  assert.match(await text(reply), /The header Idempotency-Key is there twice/);

  for (const [name, value, expected] of [
    ['Idempotency-Key', '🔑'.repeat(200), 201],
    ['Idempotency-Key', '🔑'.repeat(201), 400],
    ['Audit-Reason', '語'.repeat(500), 201],
    ['Audit-Reason', '語'.repeat(501), 400],
  ] as const) {
    const body = { public_key: newPublicKey() };
    const encoded = { [name]: Buffer.from(value).toString('latin1') };
    const made = await service.write('/me/ssh-keys', { as: 'eve', body, headers: encoded });
    assert.equal(made.status, expected, `${name} ${value.slice(0, 9)}: ${JSON.stringify(made.body)}`);
    if (expected === 400 || name !== 'Audit-Reason') continue;
    const { command_id } = made.body;
    const { reason } = await requireRow(service.app.store.read, 'audit_entries', { command_id });
    assert.equal(reason, value);
  }
  // Two keys in Latin-1 that are not UTF-8 are two keys.
  for (const key of ['caf\u00e9', 'caf\u00e8']) {
    const body = { public_key: newPublicKey() };
    assert.equal((await service.write('/me/ssh-keys', { as: 'eve', body, key })).status, 201);
  }
});

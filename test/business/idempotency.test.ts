import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

test('idempotency of Business writes', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const register = (as: string, public_key: string, key: string, path = '/me/ssh-keys') =>
    service.write(path, { as, body: { public_key }, key });
  const revoke = (as: string, id: string, key: string) =>
    service.write(`/me/ssh-keys/${id}/revoke`, { as, key });
  const list = async (as: string) => (await service.business('/me/ssh-keys', { as })).body;
  const mismatch = ({ status, body }: Awaited<ReturnType<typeof register>>) =>
    assert.deepEqual([status, body.code], [409, 'idempotency_mismatch']);

  const material = newPublicKey();
  const made = await register('ada', material, 'one');
  assert.equal(made.status, 201);

  await t.test('another comment and the deprecated route are the same request', async () => {
    const replays = [
      await register('ada', `${material} elsewhere`, 'one'),
      await register('ada', material, 'one', '/organizations/anything/ssh-keys'),
    ];
    for (const { status, body } of replays) assert.deepEqual([status, body], [200, made.body]);
  });

  await t.test('another body by the deprecated route, or another operation, is 409', async () => {
    mismatch(await register('ada', newPublicKey(), 'one', '/organizations/anything/ssh-keys'));
    mismatch(await revoke('ada', made.body.ssh_key.id, 'one'));
    assert.deepEqual(await list('ada'), { keys: [made.body.ssh_key], generation: 1 });
  });

  await t.test('a header that is there twice is refused', async () => {
    const token = await service.issuer.token('ada');
    const body = JSON.stringify({ public_key: 'x' });
    const { host, hostname, port } = new URL(service.businessUrl);
    const headers = Object.entries({
      Host: host,
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
      'Audit-Reason': 'r',
    }).flat();
    headers.push('Idempotency-Key', 'one', 'Idempotency-Key', 'two');
    const sent = request({ hostname, port, path: '/me/ssh-keys', method: 'POST', headers });
    sent.end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    assert.equal(reply.statusCode, 400);
    assert.match(await text(reply), /The header Idempotency-Key is there twice/);
  });

  await t.test('a refused request leaves its Idempotency-Key free', async () => {
    assert.equal((await register('bob', material, 'refused')).status, 409);
    assert.equal((await register('bob', newPublicKey(), 'refused')).status, 201);
  });

  await t.test('a replay has its first result, whatever became of it since', async () => {
    await revoke('ada', made.body.ssh_key.id, 'revoke');
    const replay = await register('ada', material, 'one');
    assert.deepEqual([replay.status, replay.body], [200, made.body]);
    assert.equal((await list('ada')).keys[0].lifecycle_state, 'revoked');
  });

  await t.test('identical requests at the same instant make one change and get one result', async () => {
    const { generation } = await list('ada');
    const key = newPublicKey();
    const replies = await Promise.all(Array.from({ length: 8 }, () => register('ada', key, 'at once')));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [...Array(7).fill(200), 201]);
    for (const { body } of replies) assert.deepEqual(body, replies[0]?.body);
    assert.equal((await list('ada')).generation, generation + 1);
  });

  await t.test('two people registering the same key at once: one 201, one 409', async () => {
    for (let round = 0; round < 5; round++) {
      const key = newPublicKey();
      const replies = await Promise.all(['ada', 'bob'].map((as) => register(as, key, `race ${round}`)));
      assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409]);
    }
  });

  const boundaries: [string, string, number][] = [
    ['Idempotency-Key', '🔑'.repeat(200), 201],
    ['Idempotency-Key', '🔑'.repeat(201), 400],
    ['Audit-Reason', '語'.repeat(500), 201],
    ['Audit-Reason', '語'.repeat(501), 400],
  ];
  await t.test('lengths are counted in characters, and a reason is stored as it was sent', async () => {
    for (const [index, [name, value, expected]] of boundaries.entries()) {
      const headers = { 'Idempotency-Key': `boundary-${index}`, 'Audit-Reason': 'r' };
      const { status, body } = await service.business('/me/ssh-keys', {
        as: 'eve',
        method: 'POST',
        body: { public_key: newPublicKey() },
        headers: { ...headers, [name]: Buffer.from(value).toString('latin1') },
      });
      assert.equal(status, expected, `${name} ${value.slice(0, 9)}: ${JSON.stringify(body)}`);
      if (expected === 400 || name !== 'Audit-Reason') continue;
      const { reason } = await service.app.store.read
        .selectFrom('audit_entries')
        .select('reason')
        .where('command_id', '=', body.command_id)
        .executeTakeFirstOrThrow();
      assert.equal(reason, value);
    }
  });

  await t.test('two keys in Latin-1 that are not UTF-8 are two keys', async () => {
    const reply = async (key: string) => (await register('eve', newPublicKey(), key)).status;
    assert.deepEqual([await reply('caf\u00e9'), await reply('caf\u00e8')], [201, 201]);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

test('idempotency of Business writes', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const register = (as: string, public_key: string, key: string, path = '/me/ssh-keys', reason = 'a test') =>
    service.write(path, { as, body: { public_key }, key, reason });
  const revoke = (as: string, id: string, key: string) =>
    service.write(`/me/ssh-keys/${id}/revoke`, { as, key });
  const list = async (as: string) => (await service.business('/me/ssh-keys', { as })).body;
  const mismatch = (
    { status, body }: Awaited<ReturnType<typeof register>>,
    field: 'error' | 'message',
  ): void => {
    assert.deepEqual([status, body.code, body.retryable], [409, 'idempotency_mismatch', false]);
    assert.deepEqual(Object.keys(body).sort(), ['code', field, 'retryable'].sort());
  };

  const material = newPublicKey();
  const made = await register('ada', material, 'one');
  assert.equal(made.status, 201);

  await t.test('the same key and body again returns 200 with the first result', async () => {
    const replay = await register('ada', material, 'one');
    assert.equal(replay.status, 200);
    assert.deepEqual(replay.body, made.body);
    assert.equal((await list('ada')).generation, 1);
  });

  await t.test('another comment, another reason and the deprecated route are the same request', async () => {
    const replays = [
      await register('ada', `${material} elsewhere`, 'one'),
      await register('ada', material, 'one', '/me/ssh-keys', 'another reason'),
      await register('ada', material, 'one', '/organizations/anything/ssh-keys'),
    ];
    for (const { status, body } of replays) {
      assert.equal(status, 200);
      assert.deepEqual(body, made.body);
    }
  });

  await t.test('a different body, or another operation, is 409 idempotency_mismatch', async () => {
    mismatch(await register('ada', newPublicKey(), 'one'), 'error');
    mismatch(await register('ada', newPublicKey(), 'one', '/organizations/anything/ssh-keys'), 'error');
    mismatch(await revoke('ada', made.body.ssh_key.id, 'one'), 'message');
    assert.deepEqual(await list('ada'), { keys: [made.body.ssh_key], generation: 1 });
  });

  await t.test('a key belongs to the caller: the same one of another person is a new request', async () => {
    const { status } = await register('bob', newPublicKey(), 'one');
    assert.equal(status, 201);
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

  let revoked: Awaited<ReturnType<typeof revoke>>;
  await t.test('revoking replays its result, and is 409 for a different key', async () => {
    const other = (await register('ada', newPublicKey(), 'two')).body.ssh_key.id;
    revoked = await revoke('ada', made.body.ssh_key.id, 'revoke');
    assert.equal(revoked.status, 200);
    await revoke('ada', other, 'revoke other');
    const replay = await revoke('ada', made.body.ssh_key.id, 'revoke');
    assert.equal(replay.status, 200);
    assert.deepEqual(replay.body, revoked.body);
    assert.equal(replay.body.ssh_key_set.generation, 3);
    mismatch(await revoke('ada', other, 'revoke'), 'message');
  });

  await t.test(
    'a registration is replayed with its first result even after the key was revoked',
    async () => {
      const replay = await register('ada', material, 'one');
      assert.equal(replay.status, 200);
      assert.deepEqual(replay.body, made.body);
      assert.equal((await list('ada')).keys[0].lifecycle_state, 'revoked');
    },
  );

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
    ['Idempotency-Key', 'k'.repeat(200), 201],
    ['Idempotency-Key', 'k'.repeat(201), 400],
    ['Idempotency-Key', 'ä'.repeat(200), 201],
    ['Idempotency-Key', 'ä'.repeat(201), 400],
    ['Idempotency-Key', '🔑'.repeat(200), 201],
    ['Idempotency-Key', '🔑'.repeat(201), 400],
    ['Audit-Reason', 'r'.repeat(500), 201],
    ['Audit-Reason', 'r'.repeat(501), 400],
    ['Audit-Reason', '語'.repeat(500), 201],
    ['Audit-Reason', '語'.repeat(501), 400],
  ];
  for (const [index, [name, value, expected]] of boundaries.entries()) {
    const what = `${[...value].length} times ${[...value][0]}`;
    await t.test(`a ${name} of ${what} is ${expected === 201 ? 'accepted' : 'refused'}`, async () => {
      const headers = { 'Idempotency-Key': `boundary-${index}`, 'Audit-Reason': 'r' };
      const bytes = Buffer.from(value).toString('latin1');
      const { status, body } = await service.business('/me/ssh-keys', {
        as: 'eve',
        method: 'POST',
        body: { public_key: newPublicKey() },
        headers: { ...headers, [name]: bytes },
      });
      assert.equal(status, expected, JSON.stringify(body));
      if (expected === 201 && name === 'Audit-Reason') {
        const { reason } = await service.app.store.read
          .selectFrom('audit_entries')
          .select('reason')
          .where('command_id', '=', body.command_id)
          .executeTakeFirstOrThrow();
        assert.equal(reason, value, 'the reason is stored with the change, as it was sent');
      }
    });
  }

  await t.test('two keys in Latin-1 that are not UTF-8 are two keys', async () => {
    const reply = async (key: string) => (await register('eve', newPublicKey(), key)).status;
    assert.deepEqual([await reply('caf\u00e9'), await reply('caf\u00e8')], [201, 201]);
  });
});

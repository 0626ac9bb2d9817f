import assert from 'node:assert/strict';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';

const idOf = /^ssh_key_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const unknown = 'ssh_key_01JD0000000000000000000000';

test('SSH keys', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const register = (as: string, public_key: string) =>
    service.write('/me/ssh-keys', { as, body: { public_key } });
  const revoke = (as: string, id: string) => service.write(`/me/ssh-keys/${id}/revoke`, { as });
  const list = async (as: string) => (await service.business('/me/ssh-keys', { as })).body;

  await t.test('before the first key the list is empty and the generation is 0', async () => {
    assert.deepEqual(await list('ada'), { keys: [], generation: 0 });
  });

  const material = newPublicKey();
  const registered = await register('ada', `${material} ada@laptop`);
  const first: string = registered.body.ssh_key.id;
  await t.test('POST /me/ssh-keys: 201 with ssh_key, ssh_key_set and command_id', async () => {
    const me = (await service.business('/me', { as: 'ada' })).body.user.id;
    const { status, body } = registered;
    assert.equal(status, 201);
    const { ssh_key: key, ssh_key_set: set, command_id, ...rest } = body;
    assert.deepEqual(rest, {});
    const { id, created_at, ...fields } = key;
    assert.match(id, idOf);
    assert.deepEqual(fields, {
      user_id: me,
      key_type: 'ssh-ed25519',
      public_material: material,
      fingerprint: keygenFingerprint(material),
      lifecycle_state: 'active',
      created_by_user_id: me,
      created_command_id: command_id,
      source_revision: 1,
      label: 'ada@laptop',
      created_from: '127.0.0.1',
    });
    assert.equal(typeof command_id, 'string');
    assert.equal(Number.isNaN(Date.parse(created_at)), false);
    assert.deepEqual([set.user_id, set.generation], [me, 1]);
    assert.deepEqual(await list('ada'), { keys: [key], generation: 1 });
  });

  await t.test('the generation increases with each new key and each revocation', async () => {
    const second = await register('ada', newPublicKey());
    assert.equal(second.body.ssh_key_set.generation, 2);
    const { status, body } = await revoke('ada', first);
    assert.equal(status, 200);
    assert.equal(body.ssh_key.lifecycle_state, 'revoked');
    assert.equal(Number.isNaN(Date.parse(body.ssh_key.revoked_at)), false);
    assert.equal(body.ssh_key_set.generation, 3);
    assert.notEqual(body.ssh_key_set.source_hash, second.body.ssh_key_set.source_hash);
    const { keys, generation } = await list('ada');
    assert.equal(generation, 3);
    assert.deepEqual(
      keys.map((key: { lifecycle_state: string; revoked_at?: string }) => [
        key.lifecycle_state,
        'revoked_at' in key,
      ]),
      [
        ['revoked', true],
        ['active', false],
      ],
    );
  });

  await t.test('a key is called by its comment until it is named, on one line', async () => {
    const labels = async () => (await list('ada')).keys.map(({ label }: { label?: string }) => label);
    assert.deepEqual(await labels(), ['ada@laptop', undefined]);
    const { generation, keys } = await list('ada');
    const { id } = keys[1];
    const rename = (as: string, keyId: string, label: unknown) =>
      service.write(`/me/ssh-keys/${keyId}/label`, { as, method: 'PUT', body: { label } });
    const named = await rename('ada', id, ' Work\n\u202elaptop ');
    assert.deepEqual([named.status, named.body.ssh_key.label], [200, 'Work \\u202elaptop']);
    assert.deepEqual(await labels(), ['ada@laptop', 'Work \\u202elaptop']);
    assert.equal((await list('ada')).generation, generation);
    assert.equal((await rename('ada', id, '')).body.ssh_key.label, undefined);
    assert.equal((await rename('ada', id, 'x'.repeat(81))).status, 422);
    assert.equal((await rename('ada', 'nonsense', 'x')).status, 400);
    assert.deepEqual(await labels(), ['ada@laptop', undefined]);
  });

  await t.test('revoking again with a new key returns the key and set as they are', async () => {
    const before = await list('ada');
    const { status, body } = await revoke('ada', first);
    assert.equal(status, 200);
    assert.deepEqual(body.ssh_key, before.keys[0]);
    assert.equal(body.ssh_key_set.generation, 3);
    assert.deepEqual(await list('ada'), before);
  });

  await t.test('a key registered by anyone, revoked or not, is 409 invalid_state for everyone', async () => {
    const active = (await list('ada')).keys[1].public_material;
    for (const [as, key] of [
      ['ada', active],
      ['bob', active],
      ['ada', material],
      ['bob', material],
      ['bob', `  ${material}   another comment`],
    ] as const) {
      const { status, body } = await register(as, key);
      assert.deepEqual([status, body.code, body.retryable], [409, 'invalid_state', false]);
      assert.deepEqual(Object.keys(body).sort(), ['code', 'error', 'retryable']);
    }
    assert.deepEqual(await list('bob'), { keys: [], generation: 0 });
  });

  await t.test('a keyID that is not an SSH key ID is 400 invalid_request', async () => {
    for (const id of [
      'nonsense',
      'user_01JD0000000000000000000000',
      unknown.toLowerCase(),
      '%2F',
      `${unknown}0`,
    ]) {
      const { status, body } = await revoke('ada', id);
      assert.deepEqual([status, body.code], [400, 'invalid_request'], id);
      assert.equal(typeof body.message, 'string');
    }
  });

  await t.test('what is no key is 400 with error for message; another shape is 422', async () => {
    for (const path of ['/me/ssh-keys', '/organizations/org_of_nobody/ssh-keys']) {
      for (const [body, expected, field] of [
        [{ public_key: 'ssh-rsa AAAA' }, 400, 'error'],
        ['{"public_key":', 400, 'message'],
        [{ public_key: 5 }, 422, 'message'],
        [{ public_key: 'x', comment: 'y' }, 422, 'message'],
        ...['{}', '[]', 'null', '"ssh-ed25519 AAAA"'].map((text) => [text, 422, 'message'] as const),
      ] as const) {
        const reply = await service.write(path, { as: 'eve', body });
        assert.deepEqual([reply.status, reply.body.code], [expected, 'invalid_request']);
        assert.deepEqual(Object.keys(reply.body).sort(), ['code', 'retryable', field].sort());
      }
    }
    assert.deepEqual(await list('eve'), { keys: [], generation: 0 });
  });

  await t.test('the deprecated alias registers for the caller; its orgID needs no membership', async () => {
    const { status, body } = await service.write('/organizations/org_of_nobody/ssh-keys', {
      as: 'eve',
      body: { public_key: newPublicKey() },
    });
    assert.equal(status, 201);
    assert.deepEqual((await list('eve')).keys, [body.ssh_key]);
  });
});

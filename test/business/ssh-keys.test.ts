import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, physics, startTestApp } from '../support/app.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';

const idOf = /^ssh_key_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const unknown = 'ssh_key_01JD0000000000000000000000';

test('SSH keys', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const register = (as: string, public_key: unknown, call: Partial<Call> & { key?: string } = {}) =>
    service.write('/me/ssh-keys', { as, body: { public_key }, ...call });
  const revoke = (as: string, id: string, call: Partial<Call> & { key?: string } = {}) =>
    service.write(`/me/ssh-keys/${id}/revoke`, { as, ...call });
  const list = async (as: string) => (await service.business('/me/ssh-keys', { as })).body;

  await t.test('before the first key the list is empty and the generation is 0', async () => {
    assert.deepEqual(await list('ada'), { keys: [], generation: 0 });
  });

  const material = newPublicKey();
  const registered = await register('ada', `${material} ada@laptop`);
  const first: string = registered.body.ssh_key.id;
  await t.test(
    'POST /me/ssh-keys registers a key: 201 with ssh_key, ssh_key_set and command_id',
    async () => {
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
    },
  );

  await t.test(
    'the generation increases with each new key and with each revocation of an active one',
    async () => {
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
    },
  );

  await t.test(
    'a key is called by its comment until it is named, on one line that can be shown',
    async () => {
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
      assert.equal((await rename('bob', id, 'mine')).status, 404);
      assert.equal((await rename('ada', id, 'x'.repeat(81))).status, 422);
      assert.equal((await rename('ada', 'nonsense', 'x')).status, 400);
      assert.deepEqual(await labels(), ['ada@laptop', undefined]);
    },
  );

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

  await t.test('a key of someone else, and one that is not there, is 404 not_found to revoke', async () => {
    const active = (await list('ada')).keys[1].id;
    for (const id of [active, unknown]) {
      const { status, body } = await revoke('bob', id);
      assert.deepEqual([status, body.code, body.retryable], [404, 'not_found', false]);
    }
    assert.equal((await list('ada')).generation, 3);
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

  for (const path of ['/me/ssh-keys', '/organizations/org_of_nobody/ssh-keys']) {
    const post = (call: Partial<Call> & { key?: string; reason?: string }) =>
      service.write(path, { as: 'eve', body: { public_key: newPublicKey() }, ...call });

    const own: [string, Partial<Call> & { key?: string; reason?: string }][] = [
      ['the key is not a single Ed25519 key', { body: { public_key: 'ssh-rsa AAAA' } }],
    ];
    for (const [what, call] of own) {
      await t.test(`POST ${path}: 400 with error in place of message when ${what}`, async () => {
        const { status, body } = await post(call);
        assert.deepEqual([status, body.code, body.retryable], [400, 'invalid_request', false]);
        assert.deepEqual(Object.keys(body).sort(), ['code', 'error', 'retryable']);
      });
    }

    const standard: [string, number, Partial<Call>][] = [
      ['without a token', 401, { token: 'nonsense' }],
      ['without public_key', 422, { body: {} }],
      ['with a public_key that is no text', 422, { body: { public_key: 5 } }],
      ['with a field that is not known', 422, { body: { public_key: 'x', comment: 'y' } }],
      ['with a list', 422, { body: [] }],
      ['with null', 422, { body: 'null' }],
      ['with a text', 422, { body: '"ssh-ed25519 AAAA"' }],
      ['with JSON that cannot be read', 400, { body: '{"public_key":' }],
      ['with another content type', 400, { body: 'x', headers: { 'content-type': 'text/plain' } }],
      ['with more than 1 MiB', 400, { body: { public_key: 'x'.repeat(2 ** 20) } }],
    ];
    for (const [what, expected, call] of standard) {
      await t.test(`POST ${path} ${what}: ${expected} with the standard body`, async () => {
        const { status, body } = await post(call);
        assert.equal(status, expected);
        assert.equal(body.code, expected === 401 ? 'unauthorized' : 'invalid_request');
        assert.deepEqual(Object.keys(body).sort(), ['code', 'message', 'retryable']);
      });
    }
  }

  await t.test('a refused request stores nothing but its audit entry: no key, no command', async () => {
    assert.deepEqual(await list('eve'), { keys: [], generation: 0 });
    const { read } = service.app.store;
    const made = await read.selectFrom('ssh_keys').select('id').execute();
    const commands = await read.selectFrom('commands').select(['id', 'operation']).execute();
    const audit = await read.selectFrom('audit_entries').selectAll().execute();
    assert.equal(made.length, 2);
    // Two registrations, one revocation, one that found the key revoked already.
    assert.equal(commands.length, 6);
    assert.deepEqual(
      audit.flatMap(({ command_id }) => command_id ?? []),
      commands.map(({ id }) => id),
    );
    const done = audit.filter(({ command_id }) => command_id !== null);
    assert.ok(done.every(({ reason, target }) => reason === 'a test' && idOf.test(target)));
    const refused = audit.filter(({ result }) => result.startsWith('refused: '));
    assert.ok(refused.length > 0 && refused.every(({ command_id }) => command_id === null));
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';

async function start() {
  const service = await startTestApp({ lab: { ...physics, clusters: [] } });
  return {
    service,
    register: (as: string, public_key: string) => service.write('/me/ssh-keys', { as, body: { public_key } }),
    revoke: (as: string, id: string) => service.write(`/me/ssh-keys/${id}/revoke`, { as }),
    list: async (as: string) => (await service.business('/me/ssh-keys', { as })).body,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('each new key and each revocation is a generation of the set; a revocation again changes nothing', async () => {
  await using at = await start();
  const { service, register, revoke, list } = at;
  assert.deepEqual(await list('ada'), { keys: [], generation: 0 });
  const material = newPublicKey();
  const me = (await service.business('/me', { as: 'ada' })).body.user.id;
  const { status, body } = await register('ada', `${material} ada@laptop`);
  assert.equal(status, 201);
  const { ssh_key: key, ssh_key_set: set, command_id, ...rest } = body;
  assert.deepEqual(rest, {});
  const { id: first, created_at, ...fields } = key;
  assert.match(first, /^ssh_key_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.deepEqual(fields, {
    ...{ user_id: me, key_type: 'ssh-ed25519', public_material: material },
    ...{ fingerprint: keygenFingerprint(material), lifecycle_state: 'active', label: 'ada@laptop' },
    ...{ created_by_user_id: me, created_command_id: command_id, source_revision: 1 },
    created_from: '127.0.0.1',
  });
  assert.ok(typeof command_id === 'string' && Date.parse(created_at));
  assert.deepEqual([set.user_id, set.generation], [me, 1]);
  assert.deepEqual(await list('ada'), { keys: [key], generation: 1 });

  const second = (await register('ada', newPublicKey())).body.ssh_key_set;
  const revoked = (await revoke('ada', first)).body;
  assert.deepEqual([second.generation, revoked.ssh_key_set.generation], [2, 3]);
  assert.notEqual(revoked.ssh_key_set.source_hash, second.source_hash);
  const after = await list('ada');
  assert.deepEqual([fieldsOf(after.keys, 'lifecycle_state'), after.generation], [['revoked', 'active'], 3]);
  assert.ok(Date.parse(after.keys[0].revoked_at) && !('revoked_at' in after.keys[1]));
  const again = await revoke('ada', first);
  assert.deepEqual(
    [again.status, again.body.ssh_key, again.body.ssh_key_set.generation],
    [200, after.keys[0], 3],
  );
  assert.deepEqual(await list('ada'), after);
});

test('a key is called by its comment until it is named, on one line', async () => {
  await using at = await start();
  const { service, register, list } = at;
  await register('ada', `${newPublicKey()} ada@laptop`);
  const { id } = (await register('ada', newPublicKey())).body.ssh_key;
  const labels = async () => (await list('ada')).keys.map(({ label }: { label?: string }) => label);
  assert.deepEqual(await labels(), ['ada@laptop', undefined]);
  const rename = (keyId: string, label: unknown) =>
    service.put('ada', `/me/ssh-keys/${keyId}/label`, { label });
  const named = await rename(id, ' Work\n\u202elaptop ');
  assert.deepEqual([named.status, named.body.ssh_key.label], [200, 'Work \\u202elaptop']);
  assert.deepEqual(await labels(), ['ada@laptop', 'Work \\u202elaptop']);
  assert.equal((await list('ada')).generation, 2);
  assert.equal((await rename(id, '')).body.ssh_key.label, undefined);
  assert.equal((await rename(id, 'x'.repeat(81))).status, 422);
  assert.equal((await rename('nonsense', 'x')).status, 400);
  assert.deepEqual(await labels(), ['ada@laptop', undefined]);
});

test('a key registered by anyone, revoked or not, is 409 invalid_state for everyone', async () => {
  await using at = await start();
  const { register, revoke, list } = at;
  const [active, gone] = [newPublicKey(), newPublicKey()];
  await register('ada', active);
  await revoke('ada', (await register('ada', gone)).body.ssh_key.id);
  for (const as of ['ada', 'bob'])
    for (const key of [active, gone, `  ${gone}   another comment`])
      refused(await register(as, key), 409, 'invalid_state');
  assert.deepEqual(await list('bob'), { keys: [], generation: 0 });
});

test('what is no key, or no ID of one, is 400; another shape is 422; the deprecated alias is for the caller', async () => {
  await using at = await start();
  const { service, revoke, list } = at;
  const unknown = 'ssh_key_01JD0000000000000000000000';
  const none = ['nonsense', 'user_01JD0000000000000000000000', unknown.toLowerCase(), '%2F', `${unknown}0`];
  for (const id of none) refused(await revoke('ada', id), 400, 'invalid_request');
  // Its organization needs no membership.
  const alias = '/organizations/org_of_nobody/ssh-keys';
  for (const path of ['/me/ssh-keys', alias]) {
    for (const [body, expected, field] of [
      [{ public_key: 'ssh-rsa AAAA' }, 400, 'error'],
      ['{"public_key":', 400, 'message'],
      [{ public_key: 5 }, 422, 'message'],
      [{ public_key: 'x', comment: 'y' }, 422, 'message'],
      ...['{}', '[]', 'null', '"ssh-ed25519 AAAA"'].map((text) => [text, 422, 'message'] as const),
    ] as const) {
      const reply = await service.write(path, { as: 'eve', body });
      refused(reply, expected, 'invalid_request');
      assert.ok(field in reply.body);
    }
  }
  assert.deepEqual(await list('eve'), { keys: [], generation: 0 });
  const eve = { as: 'eve', body: { public_key: newPublicKey() } } as const;
  const { status, body, headers } = await service.write(alias, eve);
  assert.deepEqual([status, (await list('eve')).keys], [201, [body.ssh_key]]);
  assert.match(headers.get('deprecation') ?? '', /^@\d{10}$/);
  assert.equal((await service.write('/me/ssh-keys', eve)).headers.get('deprecation'), null);
});

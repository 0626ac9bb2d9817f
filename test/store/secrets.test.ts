/** Secrets in a shared database: encrypted with a key that is not in it, the same for every server, never made anew in silence. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { parseSecretsKeys, type SecretsKeys } from '../../src/lib/secrets-key.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { listSecrets, openSecrets, reencryptSecrets } from '../../src/store/servers/secrets.ts';
import { openTestStore } from '../support/store.ts';

const keysOf = (...lines: string[]): SecretsKeys => {
  const keys: SecretsKeys = parseSecretsKeys(lines.join('\n'), 'the file', () => keys);
  return keys;
};
const line = () => randomBytes(32).toString('base64');

test('a secret is made once, also by two servers at once, and read by both', async () => {
  await using store = await openTestStore();
  const keys = keysOf(line());
  const [one, two] = [await openSecrets(store, keys), await openSecrets(store, keys)];
  assert.equal(await one.find('host'), undefined);
  const made = await Promise.all([one.findOrAdd('host', async () => 'A'), two.findOrAdd('host', () => 'B')]);
  assert.equal(made[0], made[1]);
  assert.equal(await two.find('host'), made[0]);
  assert.equal(await one.change('host', (text) => `${text}2`), `${made[0]}2`);
  assert.equal(await two.find('host'), `${made[0]}2`);
  const [summary] = await listSecrets(store.read);
  assert.deepEqual([summary?.name, summary?.version], ['host', 2]);
});

test('what is stored is encrypted, bound to its name, and not readable when it was changed', async () => {
  await using store = await openTestStore();
  const secrets = await openSecrets(store, keysOf(line()));
  await secrets.findOrAdd('a', () => 'very secret text');
  await secrets.findOrAdd('b', () => 'another one');
  const rows = await store.read.selectFrom('secrets').selectAll().orderBy('name').execute();
  for (const { ciphertext } of rows)
    assert.doesNotMatch(Buffer.from(ciphertext, 'base64').toString('latin1'), /secret|another/);
  const changed = /^The secret a in the database was changed/;
  const put = (ciphertext: string) =>
    store.write(({ db }) => updateRows(db, 'secrets', { name: 'a' }, { ciphertext }));
  const bytes = Buffer.from(rows[0]?.ciphertext ?? '', 'base64');
  bytes.writeUInt8(bytes.readUInt8(30) ^ 1, 30);
  for (const ciphertext of [rows[1]?.ciphertext ?? '', bytes.toString('base64'), 'AAAA']) {
    await put(ciphertext);
    await assert.rejects(secrets.find('a'), { code: 'invalid_state', message: changed });
  }
  await put(rows[0]?.ciphertext ?? '');
  assert.equal(await secrets.find('a'), 'very secret text');
});

test('with another key nothing opens and nothing is made, in a sentence that names both', async () => {
  await using store = await openTestStore();
  const [right, wrong] = [keysOf(line()), keysOf(line())];
  await (await openSecrets(store, right)).findOrAdd('host', () => 'A');
  const ids = new RegExp(`${right.keys[0].id}, and the file holds ${wrong.keys[0].id}`);
  await assert.rejects(openSecrets(store, wrong), { code: 'invalid_state', message: ids });
  assert.equal((await listSecrets(store.read)).length, 1);
});

test('a secret that is gone is not made anew', async () => {
  await using store = await openTestStore();
  const secrets = await openSecrets(store, keysOf(line()));
  await secrets.findOrAdd('host', () => 'A');
  await store.write(({ db }) => db.deleteFrom('secrets').execute());
  const gone = { code: 'invalid_state', message: /^The secret host is gone from the database/ };
  await assert.rejects(
    secrets.findOrAdd('host', () => 'B'),
    gone,
  );
  await assert.rejects(secrets.find('host'), gone);
});

test('another key takes the place of one: all or nothing, repeatable, with servers that have both', async () => {
  await using store = await openTestStore();
  const [first, second] = [line(), line()];
  const [before, after] = [keysOf(first), keysOf(second)];
  const secrets = await openSecrets(store, keysOf(first, second));
  for (const name of ['a', 'b', 'c']) await secrets.findOrAdd(name, () => `text of ${name}`);
  // With both, the one that is in use goes on being used.
  const keyIds = async () => new Set((await listSecrets(store.read)).map(({ keyId }) => keyId));
  assert.deepEqual(await keyIds(), new Set([before.keys[0].id]));

  const cut = store.write(async (tx) => {
    await reencryptSecrets(tx, before, after);
    throw new Error('cut off');
  });
  await assert.rejects(cut, /cut off/);
  assert.deepEqual(await keyIds(), new Set([before.keys[0].id]));
  await assert.rejects(
    store.write((tx) => reencryptSecrets(tx, after, keysOf(line()))),
    { code: 'invalid_state' },
  );
  const rotate = () => store.write((tx) => reencryptSecrets(tx, before, after));
  assert.deepEqual(await rotate(), { changed: 3, all: 3 });
  assert.deepEqual(await rotate(), { changed: 0, all: 3 });
  assert.deepEqual(await keyIds(), new Set([after.keys[0].id]));
  assert.equal(await secrets.find('b'), 'text of b');
  await secrets.findOrAdd('d', () => 'text of d');
  assert.deepEqual(await keyIds(), new Set([after.keys[0].id]));
  await assert.rejects(openSecrets(store, before), { code: 'invalid_state' });
  assert.equal(await (await openSecrets(store, after)).find('a'), 'text of a');
});

test('a server that runs reads its file again when the key was changed', async () => {
  await using store = await openTestStore();
  const [first, second] = [line(), line()];
  const now = keysOf(second);
  const held: SecretsKeys = { ...keysOf(first), reread: () => now };
  const secrets = await openSecrets(store, held);
  await secrets.findOrAdd('a', () => 'A');
  await store.write((tx) => reencryptSecrets(tx, keysOf(first), now));
  assert.equal(await secrets.find('a'), 'A');
});

test('a file of keys has a key a line, and nothing of it is quoted', () => {
  const tooMany = Array.from({ length: 5 }, line).join('\n');
  const bad = ['', 'short', `${line()}x`, tooMany, randomBytes(31).toString('base64')];
  for (const text of bad)
    assert.throws(
      () => keysOf(text),
      (error: Error) =>
        /^the file must hold one key a line/.test(error.message) && !(text && error.message.includes(text)),
    );
  assert.equal(keysOf(` ${line()} `, '', line()).keys.length, 2);
});

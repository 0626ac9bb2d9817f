import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  deleteRows,
  findRow,
  inCamelCase,
  insertRow,
  listRows,
  saveRow,
  updateRows,
} from '../../src/store/engine/rows.ts';
import { openTestStore } from '../support/store.ts';

const lease = { server_id: null, token: 1 };

test('a condition on null finds rows without the value, and one on a value those with it', async () => {
  await using opened = await openTestStore();
  const { store } = opened;
  const found = await store.write(async ({ db }) => {
    await insertRow(db, 'leases', { name: 'b', ...lease });
    await insertRow(db, 'leases', { name: 'a', ...lease });
    await insertRow(db, 'leases', { name: 'c', ...lease, server_id: 'server_1' });
    await updateRows(db, 'leases', { name: 'a', server_id: null }, { token: 7 });
    await updateRows(db, 'leases', { name: 'c', server_id: null }, { token: 7 });
    const free = await listRows(db, 'leases', { server_id: null }, 'name');
    const held = await listRows(db, 'leases', { server_id: 'server_1' }, 'name');
    await deleteRows(db, 'leases', { server_id: null });
    return [free, held, await listRows(db, 'leases', {}, 'name')].map((rows) =>
      rows.map(({ name, token }) => `${name} ${token}`),
    );
  });
  assert.deepEqual(found, [['a 7', 'b 1'], ['c 1'], ['c 1']]);
});

test('a row that is saved takes the place of the one with its key, but for the columns that it leaves out', async () => {
  await using opened = await openTestStore();
  const { store } = opened;
  await store.write(async ({ db }) => {
    await insertRow(db, 'leases', { name: 'a', ...lease, server_id: 'server_1' });
    await saveRow(db, 'leases', ['name'], { name: 'a', token: 2 });
    await saveRow(db, 'leases', ['name'], { name: 'b', token: 3 });
  });
  const [a, b] = await Promise.all(['a', 'b'].map((name) => findRow(store.read, 'leases', { name })));
  assert.deepEqual([a?.server_id, a?.token], ['server_1', 2]);
  assert.deepEqual([b?.server_id, b?.token], [null, 3]);
});

test('columns are fields by their names in camel case', () => {
  assert.deepEqual(inCamelCase({ id: 'a', created_by_user_id: 'b', uid: 1 }), {
    id: 'a',
    createdByUserId: 'b',
    uid: 1,
  });
});

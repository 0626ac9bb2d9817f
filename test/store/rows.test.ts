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

const session = { entry: '{}', server_id: 'server_1', closing: null, presumed_seq: 1 };

test('a condition on null finds rows without the value, and one on a value those with it', async () => {
  await using store = await openTestStore();
  const found = await store.write(async ({ db }) => {
    await insertRow(db, 'open_sessions', { id: 'b', ...session });
    await insertRow(db, 'open_sessions', { id: 'a', ...session });
    await insertRow(db, 'open_sessions', { id: 'c', ...session, closing: 'bye' });
    await updateRows(db, 'open_sessions', { id: 'a', closing: null }, { presumed_seq: 7 });
    await updateRows(db, 'open_sessions', { id: 'c', closing: null }, { presumed_seq: 7 });
    const free = await listRows(db, 'open_sessions', { closing: null }, 'id');
    const held = await listRows(db, 'open_sessions', { closing: 'bye' }, 'id');
    await deleteRows(db, 'open_sessions', { closing: null });
    return [free, held, await listRows(db, 'open_sessions', {}, 'id')].map((rows) =>
      rows.map(({ id, presumed_seq }) => `${id} ${presumed_seq}`),
    );
  });
  assert.deepEqual(found, [['a 7', 'b 1'], ['c 1'], ['c 1']]);
});

test('a row that is saved takes the place of the one with its key, but for the columns that it leaves out', async () => {
  await using store = await openTestStore();
  const { closing: _, ...saved } = session;
  await store.write(async ({ db }) => {
    await insertRow(db, 'open_sessions', { id: 'a', ...session, closing: 'bye' });
    await saveRow(db, 'open_sessions', ['id'], { ...saved, id: 'a', presumed_seq: 2 });
    await saveRow(db, 'open_sessions', ['id'], { ...saved, id: 'b', presumed_seq: 3 });
  });
  const [a, b] = await Promise.all(['a', 'b'].map((id) => findRow(store.read, 'open_sessions', { id })));
  assert.deepEqual([a?.closing, a?.presumed_seq], ['bye', 2]);
  assert.deepEqual([b?.closing, b?.presumed_seq], [null, 3]);
});

test('columns are fields by their names in camel case', () => {
  assert.deepEqual(inCamelCase({ id: 'a', created_by_user_id: 'b', uid: 1 }), {
    id: 'a',
    createdByUserId: 'b',
    uid: 1,
  });
});

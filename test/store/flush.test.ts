import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Tx } from '../../src/store/index.ts';
import { openTestStore } from '../support/store.ts';

/** SQLite's number for FULL, which waits for the disk, and NORMAL, which does not. */
const [full, normal] = [2, 1];
const mode = async ({ db }: Tx) =>
  (await sql<{ synchronous: number }>`pragma synchronous`.execute(db)).rows[0];

test('a write waits for the disk, unless it is one that will be found out again anyway', async () => {
  await using opened = await openTestStore();
  const { store } = opened;
  const modes = await Promise.all([
    store.write(mode),
    store.write(mode, { flush: false }),
    store.write(mode),
    store.write(mode, { flush: false }),
  ]);
  assert.deepEqual(
    modes.map((row) => row?.synchronous),
    [full, normal, full, normal],
  );
});

test('one that fails is taken back, and the next one waits again', async () => {
  await using opened = await openTestStore();
  const { store } = opened;
  const failing = store.write(
    async ({ db }) => {
      await db.insertInto('counters').values({ name: 'x', value: 1 }).execute();
      throw new Error('no');
    },
    { flush: false },
  );
  await assert.rejects(failing, /no/);
  assert.equal((await store.write(mode))?.synchronous, full);
  const left = await store.read.selectFrom('counters').select('name').where('name', '=', 'x').execute();
  assert.deepEqual(left, []);
});

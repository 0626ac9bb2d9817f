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
  const modes = [
    await store.write(mode),
    await store.write(mode, { flush: false }),
    await store.write(mode),
    await store.write(mode, { flush: false }),
  ];
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

const failures = [
  {
    when: 'before it writes',
    title: 'share a commit, which waits for the disk if one of them must',
    own: full,
  },
  { when: 'half-way', title: 'have one each when one of them fails half-way', own: normal },
] as const;
for (const { when, title, own } of failures) {
  test(`writes that wait together ${title}`, async () => {
    await using opened = await openTestStore();
    const { store } = opened;
    const order: string[] = [];
    const insert = (name: string) => async (tx: Tx) => {
      tx.changed({ clusterId: name });
      if (name === 'no' && when === 'before it writes') throw new Error('no');
      await tx.db.insertInto('counters').values({ name, value: 1 }).execute();
      if (name === 'no') throw new Error('no');
      return mode(tx);
    };
    const announced: unknown[] = [];
    store.onChange((changes) => announced.push(...changes));
    const settled = await Promise.allSettled(
      ['first', 'a', 'no', 'b'].map((name, index) =>
        store.write(insert(name), { flush: index === 1 }).finally(() => order.push(name)),
      ),
    );
    assert.deepEqual(
      settled.map((one) => (one.status === 'fulfilled' ? one.value?.synchronous : one.reason.message)),
      [own, full, 'no', own],
    );
    assert.deepEqual(order, ['first', 'a', 'no', 'b'], 'in the order in which they came');
    assert.deepEqual(announced, [{ clusterId: 'first' }, { clusterId: 'a' }, { clusterId: 'b' }]);
    const rows = await store.read.selectFrom('counters').select('name').orderBy('name').execute();
    assert.deepEqual(
      rows.map((row) => row.name).filter((name) => name !== 'uid'),
      ['a', 'b', 'first'],
    );
  });
}

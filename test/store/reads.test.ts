import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { listAuditEntries } from '../../src/store/audit/audit.ts';
import { cached } from '../../src/store/engine/cache.ts';
import type { Store, Tx } from '../../src/store/engine/index.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { openTestStore, testOnFile } from '../support/store.ts';

const counter = async (store: Pick<Store, 'read'>) =>
  (await store.read.selectFrom('counters').select('value').where('name', '=', 'x').executeTakeFirst())?.value;
const setTo =
  (value: number) =>
  async ({ db }: Tx) => {
    const row = { name: 'x', value };
    await db
      .insertInto('counters')
      .values(row)
      .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
      .execute();
  };

test('what a write did is read at once, also in the turn of the event loop in which others read before', async () => {
  await using store = await openTestStore();
  for (const value of [1, 2]) {
    await store.write(async (tx) => {
      await setTo(value)(tx);
      // Right before the commit.
      assert.notEqual(await counter(store), value);
    });
    assert.equal(await counter(store), value);
  }
});

test('what another process commits is read in the next turn', async () => {
  await using store = await openTestStore();
  await store.write(setTo(1));
  assert.equal(await counter(store), 1);
  await store.elsewhere("update counters set value = 2 where name = 'x'");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await counter(store), 2);
});

testOnFile('SQLite begins its log anew however much is read', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  for (let round = 0; round < 20; round++) {
    await store.write(async ({ db }) => {
      await updateRows(db, 'users', {}, { display_name: `${round} `.repeat(400_000) });
      await counter(store);
    });
  }
  const { size } = statSync(join(dataDir, 'andromeda.db-wal'));
  assert.ok(size < 10_000_000, `${size} bytes`);
});

test('a snapshot sees one moment, and the others meanwhile the present', async () => {
  await using store = await openTestStore();
  await store.write(setTo(1));
  const seen = await store.readSnapshot(async (read) => {
    const before = await counter({ read });
    await store.write(setTo(2));
    return [before, await counter(store), await counter({ read })];
  });
  assert.deepEqual(seen, [1, 2, 1]);
});

test('what is made of the database is the same until a commit, by this process or another one', async () => {
  await using store = await openTestStore();
  await store.write(setTo(1));
  let times = 0;
  const make = async () => ({ value: await counter(store), times: ++times });
  const ask = (key = 'x') => cached(store, key, make);
  const together = await Promise.all([ask(), ask(), ask()]);
  assert.deepEqual(together, Array(3).fill({ value: 1, times: 1 }));
  assert.equal(await ask(), together[0]);
  assert.ok(Object.isFrozen(together[0]));
  assert.deepEqual(await ask('y'), { value: 1, times: 2 });

  await store.write(setTo(2));
  assert.deepEqual(await ask(), { value: 2, times: 3 });
  await store.write(setTo(3), { flush: false });
  assert.deepEqual(await ask(), { value: 3, times: 4 });

  await store.elsewhere("update counters set value = 4 where name = 'x'");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await ask(), { value: 4, times: 5 });
});

test('what was made while something was committed is not kept', async () => {
  await using store = await openTestStore();
  await store.write(setTo(1));
  const before = await cached(store, 'x', async () => {
    const value = await counter(store);
    await store.write(setTo(2));
    return { value };
  });
  assert.deepEqual(before, { value: 1 });
  assert.deepEqual(await cached(store, 'x', async () => ({ value: await counter(store) })), {
    value: 2,
  });
});

test('of each kind so many are kept, and none of them in the place of another kind', async () => {
  await using opened = await openTestStore();
  const ask = (key: string) => cached(opened.store, key, async () => ({}));
  const list = await ask('members/one');
  for (let n = 0; n < 1_000; n += 1) await ask(`me/${n}`);
  assert.equal(await ask('members/one'), list);
  const first = await ask('me/0');
  await ask('me/1000');
  assert.notEqual(await ask('me/0'), first);
});

test('what could not be made is tried again', async () => {
  await using store = await openTestStore();
  await assert.rejects(
    cached(store, 'x', async () => {
      throw new Error('no');
    }),
    /no/,
  );
  assert.deepEqual(await cached(store, 'x', async () => ({ yes: 1 })), { yes: 1 });
});

testOnFile('what the trail says of a person, or of a cluster, is found by indexes', async (t) => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const prepare = t.mock.method(Database.prototype, 'prepare');
  const page = { after: 0, limit: 10, order: 'newest' } as const;
  await listAuditEntries(store.read, { userId: 'user_1' }, page);
  await listAuditEntries(store.read, { clusterId: 'c' }, page);
  const asked = prepare.mock.calls.map(({ arguments: [sql] }) => String(sql));
  prepare.mock.restore();
  const database = new Database(join(dataDir, 'andromeda.db'), { readonly: true });
  const plans = asked
    .filter((sql) => sql.includes('audit_entries'))
    .map(
      (sql) =>
        database.prepare(`explain query plan ${sql.replaceAll('?', "''")}`).all() as { detail: string }[],
    )
    .map((steps) => steps.flatMap(({ detail }) => /audit_entries_by_\w+/.exec(detail) ?? []));
  database.close();
  assert.deepEqual(plans, [
    ['audit_entries_by_actor', 'audit_entries_by_subject'],
    ['audit_entries_by_cluster'],
  ]);
});

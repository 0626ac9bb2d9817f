import assert from 'node:assert/strict';
import fs, { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { sql } from 'kysely';
import { cached } from '../../src/store/engine/cache.ts';
import { openSqlite } from '../../src/store/engine/engine.ts';
import type { Store, Tx } from '../../src/store/engine/index.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { fieldsOf } from '../support/fields.ts';
import { everyKind, openTestStore } from '../support/store.ts';

/** Flushes of this process: how many began, and each ends when it may. */
function holdFlushes() {
  const { fdatasync } = fs;
  const held: (() => void)[] = [];
  let isHolding = true;
  let onBegin = () => {};
  const flushes = {
    count: 0,
    /** What each ends with in place of the disk's answer. */
    error: undefined as Error | undefined,
    begun: () =>
      new Promise<void>((resolve) => {
        if (held.length > 0) resolve();
        else onBegin = resolve;
      }),
    /** Lets those go that began, and all that begin from now on. */
    release() {
      isHolding = false;
      for (const go of held.splice(0)) go();
    },
    [Symbol.dispose]() {
      flushes.release();
      fs.fdatasync = fdatasync;
      syncBuiltinESMExports();
    },
  };
  const hold = (descriptor: number, done: fs.NoParamCallback) => {
    flushes.count++;
    const go = () => (flushes.error ? done(flushes.error) : fdatasync(descriptor, done));
    if (isHolding) held.push(go);
    else go();
    onBegin();
  };
  fs.fdatasync = hold as typeof fdatasync;
  syncBuiltinESMExports();
  return flushes;
}

const insert = (name: string) => async (tx: Tx) => {
  await tx.db.insertInto('counters').values({ name, value: 1 }).execute();
  tx.changed({ kind: 'cluster', clusterId: name });
};
/** The counters that these tests insert: those of a new database have larger values. */
const names = async (db: Store['read']) =>
  fieldsOf(await listRows(db, 'counters', { value: 1 }, 'name'), 'name');
const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

test('until it is on disk a write is not answered, not announced and not seen, and no read waits for it', async () => {
  await using store = await openTestStore();
  using flushes = holdFlushes();
  const events: string[] = [];
  store.onChange(everyKind, () => events.push('announced'));
  const made = () => cached(store, 'names', async () => ({ names: await names(store.read) }));
  await made();
  const writing = store.write(insert('a')).then(() => events.push('answered'));
  await flushes.begun();
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(await names(store.read), []);
    assert.deepEqual(await store.readSnapshot(names), []);
    assert.deepEqual(await made(), { names: [] });
    await turns();
  }
  assert.deepEqual(events, []);
  flushes.release();
  await writing;
  assert.deepEqual(events, ['announced', 'answered']);
  assert.deepEqual(await names(store.read), ['a']);
  assert.deepEqual(await store.readSnapshot(names), ['a']);
  assert.deepEqual(await made(), { names: ['a'] });
});

test('a snapshot that begins or ends while a write is flushed is of one moment, and the next one sees the write', async () => {
  await using store = await openTestStore();
  using flushes = holdFlushes();
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const early = store.readSnapshot(async (db) => {
    const before = await names(db);
    begun.resolve();
    await goOn.promise;
    return [before, await names(db)];
  });
  await begun.promise;
  const writing = store.write(insert('a'));
  await flushes.begun();
  goOn.resolve();
  assert.deepEqual(await early, [[], []]);
  const late = store.readSnapshot(async (db) => {
    const before = await names(db);
    flushes.release();
    await writing;
    return [before, await names(db)];
  });
  assert.deepEqual(await late, [[], []]);
  assert.deepEqual(await store.readSnapshot(names), ['a']);
});

test('a write that will be found out again anyway does not wait for the disk', async () => {
  await using opened = await openTestStore();
  using flushes = holdFlushes();
  await opened.store.write(insert('a'), { flush: false });
  assert.equal(flushes.count, 0);
  assert.deepEqual(await names(opened.store.read), ['a']);
});

test('one that fails is taken back, and the next one waits for the disk again', async () => {
  await using store = await openTestStore();
  using flushes = holdFlushes();
  flushes.release();
  const failing = store.write(
    async (tx) => {
      await insert('a')(tx);
      throw new Error('no');
    },
    { flush: false },
  );
  await assert.rejects(failing, /no/);
  assert.equal(flushes.count, 0);
  await store.write(insert('b'));
  assert.equal(flushes.count, 1);
  assert.deepEqual(await names(store.read), ['b']);
});

test('writes that come while one is flushed share flushes', async () => {
  await using store = await openTestStore();
  using flushes = holdFlushes();
  const first = store.write(insert('first'));
  await flushes.begun();
  const many = Array.from({ length: 50 }, (_, index) => store.write(insert(`${index}`)));
  await turns();
  assert.equal(flushes.count, 1);
  flushes.release();
  await Promise.all([first, ...many]);
  assert.equal((await names(store.read)).length, 51);
  assert.ok(flushes.count < 40, `${flushes.count} flushes`);
});

for (const when of ['before it writes', 'half-way']) {
  test(`writes that wait together are done in order where one of them fails ${when}`, async () => {
    await using store = await openTestStore();
    const order: string[] = [];
    const announced: unknown[] = [];
    store.onChange(everyKind, (changes) => announced.push(...changes));
    const body = (name: string) => async (tx: Tx) => {
      if (name === 'no' && when === 'before it writes') throw new Error('no');
      await insert(name)(tx);
      if (name === 'no') throw new Error('no');
    };
    const settled = await Promise.allSettled(
      ['first', 'a', 'no', 'b'].map((name, index) =>
        store.write(body(name), { flush: index === 1 }).finally(() => order.push(name)),
      ),
    );
    assert.deepEqual(fieldsOf(settled, 'status'), ['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    assert.deepEqual(order, ['first', 'a', 'no', 'b'], 'in the order in which they came');
    assert.deepEqual(announced, [
      { kind: 'cluster', clusterId: 'first' },
      { kind: 'cluster', clusterId: 'a' },
      { kind: 'cluster', clusterId: 'b' },
    ]);
    assert.deepEqual(await names(store.read), ['a', 'b', 'first']);
  });
}

test('where the disk fails nothing is answered or seen any more, and the process is ended', async () => {
  await using opened = await openTestStore();
  await opened.store.close();
  using flushes = holdFlushes();
  const connections = openSqlite(join(opened.dataDir, 'andromeda.db'));
  const ended = new Promise<Error>((resolve) => connections.flushBeside(resolve));
  const body = (db: Tx['db']) => db.insertInto('counters').values({ name: 'a', value: 1 }).execute();
  connections.transact(body, { flush: true }).then(
    () => assert.fail('answered'),
    () => assert.fail('refused, so that it would be tried again'),
  );
  await flushes.begun();
  flushes.error = new Error('EIO');
  flushes.release();
  assert.equal((await ended).message, 'EIO');
  await turns();
  assert.deepEqual(await names(connections.reader), []);
});

test('what a long log holds goes into the database file on another thread, which leaves the log to begin anew', async () => {
  await using test = await openTestStore();
  const { store, dataDir } = test;
  const size = (name: string) => fs.statSync(join(dataDir, name)).size;
  for (let i = 0; size('andromeda.db') < 20_000_000; i++) {
    await store.write(({ db }) =>
      sql`insert into counters values (${`${i} `.repeat(100_000)}, 1)`.execute(db),
    );
    assert.ok(i < 1_000, 'the file does not grow');
  }
  assert.ok(size('andromeda.db-wal') < 8_000_000);
  // SQLite has one for all connections of a process. A second library of SQLite would have its own, and its own idea of
  // who holds which lock.
  const shared = join(dataDir, 'andromeda.db-shm');
  const descriptors = fs.readdirSync('/proc/self/fd').map((name) => `/proc/self/fd/${name}`);
  const opened = descriptors.filter((path) => fs.existsSync(path) && fs.readlinkSync(path) === shared);
  assert.equal(opened.length, 1);
});

test('the log is emptied of what no row has any more between writes, and not while another connection reads it', async () => {
  await using store = await openTestStore();
  const file = join(store.dataDir, 'andromeda.db');
  const hasName = () => readFileSync(`${file}-wal`, 'latin1').includes('a-name-to-forget');
  await store.write(insert('a-name-to-forget'));
  await store.write(({ db }) => db.deleteFrom('counters').where('name', '=', 'a-name-to-forget').execute());
  const reading = new Database(file, { readonly: true });
  try {
    reading.exec('begin');
    reading.prepare('select name from counters').all();
    assert.equal(await store.emptyLog(), false);
    assert.ok(hasName());
  } finally {
    reading.close();
  }
  const writes = Array.from({ length: 20 }, (_, at) => store.write(insert(`w${at}`)));
  assert.ok(await store.emptyLog());
  await Promise.all(writes);
  assert.ok(!hasName());
  assert.equal((await names(store.read)).length, 20);
});

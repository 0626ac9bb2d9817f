/** What is wrong with the database is said where it is met: at the start, in `/readyz` and by a read. */

import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { PostgresError } from '../../src/store/engine/postgres/fault.ts';
import { createReadinessCheck } from '../../src/store/engine/readiness.ts';
import { eventually, physics } from '../support/app.ts';
import { fill, smallDisk } from '../support/both-versions.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { damageTable } from '../support/schemas.ts';
import { openTestStore } from '../support/store.ts';

const noTmpfs = process.getuid?.() !== 0 && 'only root can mount a disk that is full or read-only';

test('readiness writes: a full disk is not ready and is said to be full, and ready again when there is room', {
  skip: noTmpfs,
}, async () => {
  using disk = smallDisk(4);
  const store = await openStore(join(disk.path, 'data'));
  await createReadinessCheck(store)();
  const filler = join(disk.path, 'filler');
  fill(filler);
  // The log of the database may have room for a row or two.
  const isFull = async () => {
    for (let i = 0; i < 2_000; i++) await createReadinessCheck(store)();
  };
  await assert.rejects(isFull(), {
    code: 'service_unavailable',
    message: 'The database cannot be written: the disk is full.',
  });
  rmSync(filler);
  await createReadinessCheck(store)();
  await store.close();
});

test('a write for which there was no room ends readiness at once, though one row still fits', {
  skip: noTmpfs,
}, async () => {
  using disk = smallDisk(4);
  const store = await openStore(join(disk.path, 'data'));
  const check = createReadinessCheck(store);
  await check();
  const filler = join(disk.path, 'filler');
  fill(filler);
  truncateSync(filler, statSync(filler).size - 40_960);
  const rows = Array.from({ length: 200 }, (_, i) => ({ name: `${i} ${'x'.repeat(1_000)}`, value: 1 }));
  const write = () => store.write(({ db }) => db.insertInto('counters').values(rows).execute());
  await assert.rejects(write(), { code: 'service_unavailable' });
  for (let i = 0; i < 3; i++) await assert.rejects(check(), { message: /the disk is full\.$/ });
  rmSync(filler);
  await eventually(
    () => check().then(Boolean, () => true),
    (isFull) => !isFull,
  );
  await write();
  await store.close();
});

test('a disk that takes no row in time is not ready, and one answer serves all who ask meanwhile', async () => {
  await using store = await openTestStore();
  let writes = 0;
  const check = createReadinessCheck({
    ...store,
    write: (body, options) => {
      writes++;
      return store.write(body, options);
    },
  });
  await Promise.all([check(), check(), check()]);
  await check();
  assert.equal(writes, 1);
});

test('a database that finds no room is tried once a second, however many ask', async () => {
  await using store = await openTestStore();
  let writes = 0;
  let fullAt = Number.NEGATIVE_INFINITY;
  const check = createReadinessCheck({
    ...store,
    fullAt: () => fullAt,
    write: () => {
      writes++;
      fullAt = performance.now();
      return Promise.reject(new Error('the disk is full'));
    },
  });
  for (let i = 0; i < 10; i++) await assert.rejects(check(), /the disk is full/);
  assert.equal(writes, 1);
});

test('a server that finds only a former primary is not ready at once, though it wrote a moment ago', async () => {
  await using store = await openTestStore();
  let failure: Error | undefined;
  const check = createReadinessCheck({ ...store, failure: () => failure });
  await check();
  failure = new PostgresError('it is a former primary', { isLost: true, isFormer: true });
  await assert.rejects(check(), {
    code: 'service_unavailable',
    message: /^The database cannot be written: only a former primary answers/,
  });
  failure = undefined;
  await check();
});

const takenAway: Record<string, (file: string) => void> = {
  removed: (file) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix);
  },
  'removed in part': (file) => rmSync(`${file}-wal`),
  replaced: (file) => {
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
  },
};

for (const [how, take] of Object.entries(takenAway)) {
  test(`a database whose files were ${how} takes no write that would be answered, and is not ready`, async () => {
    await using opened = await openTestStore(physics);
    const { store, dataDir } = opened;
    const insert = (name: string) =>
      store.write(({ db }) => db.insertInto('counters').values({ name, value: 1 }).execute());
    await insert('before');
    await createReadinessCheck(store)();
    take(join(dataDir, 'andromeda.db'));
    await assert.rejects(insert('a'), {
      code: 'service_unavailable',
      message: 'The database takes no writes at the moment. Nothing was changed; try again.',
    });
    const together = await Promise.allSettled([insert('b'), insert('c'), insert('d')]);
    assert.deepEqual(fieldsOf(together, 'status'), ['rejected', 'rejected', 'rejected']);
    const rows = await store.read.selectFrom('counters').select('name').orderBy('name').execute();
    assert.deepEqual(
      rows.map(({ name }) => name).filter((name) => name.length === 1),
      [],
    );
    await assert.rejects(createReadinessCheck(store)(), {
      code: 'service_unavailable',
      message:
        /^The database cannot be written: its files were moved, removed or replaced; stop the service,/,
    });
  });
}

test('a data directory that is moved away and back again takes writes again', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  renameSync(dataDir, `${dataDir}.away`);
  await assert.rejects(createReadinessCheck(store)(), /its files were moved/);
  renameSync(`${dataDir}.away`, dataDir);
  await createReadinessCheck(store)();
});

test('a damaged page is said to be one by a read, by readiness, and at the start', async () => {
  await using opened = await openTestStore(physics);
  await opened.store.close();
  const { dataDir } = opened;
  const file = join(dataDir, 'andromeda.db');
  damageTable(file, 'users');
  damageTable(file, 'counters');
  const store = await openStore(dataDir);
  await assert.rejects(store.read.selectFrom('users').selectAll().execute(), {
    code: 'service_unavailable',
    message: /The database is damaged/,
  });
  await assert.rejects(createReadinessCheck(store)(), {
    code: 'service_unavailable',
    message: /cannot be written: it is damaged, and a backup has to be restored/,
  });
  await store.close();
  damageTable(file, 'kysely_migration');
  await assert.rejects(openStore(dataDir), /it is damaged, and a backup has to be restored/);
});

for (const state of ['missing', 'empty']) {
  test(`a database that is ${state} where there are keys is refused, with what to do; without keys a new one is made`, async () => {
    using directory = temporaryDirectory();
    const path = directory.path;
    await (await openStore(path)).close();
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(path, `andromeda.db${suffix}`), { force: true });
    if (state === 'empty') writeFileSync(join(path, 'andromeda.db'), '');
    mkdirSync(join(path, 'keys'));
    writeFileSync(join(path, 'keys/gateway_host_ed25519'), 'x');
    chmodSync(join(path, 'keys'), 0o700);
    await assert.rejects(openStore(path), {
      code: 'invalid_state',
      message: new RegExp(
        `is ${state}, and there are keys beside it.*andromeda restore.*To begin anew on purpose, move`,
      ),
    });
    rmSync(join(path, 'keys'), { recursive: true });
    await (await openStore(path)).close();
  });
}

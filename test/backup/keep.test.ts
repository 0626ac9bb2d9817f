/** A backup to where it is kept: read back, and the oldest removed. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { storeBackup } from '../../src/service/backup/directory.ts';
import { keepBackup } from '../../src/service/backup/keep.ts';
import { newestFirst, tooMany } from '../../src/service/backup/names.ts';
import { readKeptBackup, readLastBackup } from '../../src/store/data-dir/last-backup.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { becomes } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { installation } from './installation.ts';

const version = '9.9.9';

type Installation = Awaited<ReturnType<typeof installation>>;

/** Makes its database so much larger. */
function pad({ dataDir }: Installation, mebibytes: number): void {
  const database = new Database(join(dataDir, 'andromeda.db'));
  database.exec('create table padding (content blob)');
  for (let i = 0; i < mebibytes; i++) database.exec('insert into padding values (randomblob(1048576))');
  database.close();
}

/** Keeps one that was made in a given minute. */
function keep(
  { dataDir, place }: Installation,
  minute: number,
  more: { to?: string; signal?: AbortSignal; onProgress?(part: number): void } = {},
) {
  const { to = place, ...making } = more;
  const madeAt = `2030-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`;
  const settings = { keep: 3, to, after: undefined };
  return keepBackup({ settings, dataDir, madeAt, version, elsewhere: [], ...making });
}

/** What of a backup is left where it is made. */
const leftIn = (dataDir: string) => readdirSync(dataDir).filter((name) => name === 'backup-work');

test('backups in a directory: verified, noted, and of ours only the newest stay', async () => {
  using own = await installation();
  const foreign = 'andromeda-000000000000-20200101T000000Z.backup';
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) writeFileSync(join(own.place, name), 'x');
  const kept = [];
  for (const minute of [1, 2, 3, 4]) kept.push(await keep(own, minute));
  assert.deepEqual(fieldsOf(kept, 'removed'), [0, 0, 0, 1]);
  const last = kept.at(-1);
  assert.match(last?.file ?? '', /\/andromeda-[0-9a-f]{12}-20300101T000400Z\.backup$/);
  const there = readdirSync(own.place);
  assert.equal(there.length, 6, String(there));
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) assert.ok(there.includes(name));
  assert.ok(!there.some((name) => name.includes('T000100Z')));
  const { bytes, file } = last ?? {};
  assert.deepEqual(readLastBackup(own.dataDir), { at: '2030-01-01T00:04:00.000Z', file, bytes });
  assert.deepEqual(readKeptBackup(own.dataDir), {
    at: '2030-01-01T00:04:00.000Z',
    file,
    bytes,
    awaits: false,
  });
  assert.deepEqual(leftIn(own.dataDir), []);
  const restored = restoreBackup(file ?? '', join(own.path, 'restored'), '2030-01-02T00:00:00.000Z');
  assert.equal(restored.madeAt, '2030-01-01T00:04:00.000Z');
  // The installation that comes back goes on with its own backups.
  const id = (dataDir: string) => readFileSync(join(dataDir, 'backup-id.json'), 'utf8');
  assert.equal(id(join(own.path, 'restored')), id(own.dataDir));
});

test('never the last good one: names from a clock that was ahead do not push it out', () => {
  const id = '0123456789ab';
  const name = (year: number) => `andromeda-${id}-${year}0101T000000Z.backup`;
  const stored = [2031, 2032, 2033, 2020].map((year) => ({ name: name(year), bytes: 1 }));
  assert.deepEqual(tooMany(stored, { id, keep: 2, good: name(2020) }), [name(2032), name(2031)]);
  assert.deepEqual(tooMany(stored, { id, keep: 1, good: name(2020) }).length, 3);
  assert.deepEqual(tooMany(stored, { id: 'ffffffffffff', keep: 1, good: 'none' }), []);
  assert.deepEqual(newestFirst([...stored, { name: 'else', bytes: 1 }])[0]?.name, name(2033));
});

test('what was killed is swept away, and nothing half counts', async () => {
  using own = await installation();
  pad(own, 16);
  const ending = new AbortController();
  const parts: string[] = [];
  const interrupted = keep(own, 1, {
    signal: ending.signal,
    onProgress: () => {
      parts.push(...readdirSync(join(own.dataDir, 'backup-work')));
      ending.abort();
    },
  });
  await assert.rejects(interrupted, { name: 'AbortError' });
  assert.ok(parts.length > 0);
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
  assert.equal(readLastBackup(own.dataDir), undefined);
  // As after kill -9: a copy, and a part of what was being written.
  const { id } = JSON.parse(readFileSync(join(own.dataDir, 'backup-id.json'), 'utf8'));
  mkdirSync(join(own.dataDir, 'backup-work'), { recursive: true });
  writeFileSync(join(own.dataDir, 'backup-work/copy.1.part'), 'secret');
  writeFileSync(join(own.place, `.andromeda-${id}-20300101T000100Z.backup.part`), 'half');
  await keep(own, 2);
  assert.deepEqual(leftIn(own.dataDir), []);
  assert.deepEqual(readdirSync(own.place).length, 1);
});

test('a directory that cannot be used is one sentence, and what is damaged is not kept', async () => {
  using own = await installation();
  pad(own, 4);
  await assert.rejects(keep(own, 1, { to: join(own.path, 'none') }), {
    message: `${join(own.path, 'none')} does not exist. Make the directory, or mount what it lies on.`,
  });
  const bytes = readFileSync(join(own.dataDir, 'andromeda.db'));
  bytes.fill(0x55, bytes.length / 2, bytes.length / 2 + 8192);
  writeFileSync(join(own.dataDir, 'andromeda.db'), bytes);
  await assert.rejects(keep(own, 1), {
    code: 'invalid_state',
    message: /^The database in .* is damaged, so no backup was written\. Restore the last good one/,
  });
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
});

test('what is not read back as it was written is not kept', async () => {
  using own = await installation();
  const copy = join(own.path, 'pipe');
  execFileSync('mkfifo', [copy]);
  const placing = storeBackup(copy, own.place, 'andromeda-one.backup');
  const bytes = Buffer.alloc(100_000, 'a backup ');
  await using pipe = await open(copy, 'w');
  await pipe.write(bytes);
  const part = join(own.place, '.andromeda-one.backup.part');
  await becomes(() => statSync(part, { throwIfNoEntry: false })?.size, bytes.length);
  await using disk = await open(part, 'r+');
  await disk.write(Buffer.from('X'), 0, 1, 50_000);
  await pipe.close();
  await assert.rejects(placing, {
    message: /one\.backup was written, and what was read back is not the same\./,
  });
  assert.deepEqual(readdirSync(own.place), []);
});

test('an old one that cannot be removed is said, and the new one is as good', {
  skip: process.getuid?.() !== 0 && 'needs root, for a directory whose files only their owner removes',
}, async () => {
  using own = await installation();
  for (const minute of [1, 2, 3]) await keep(own, minute);
  const nobody = 65_534;
  for (const path of [own.path, own.place]) chmodSync(path, 0o1777);
  execFileSync('chown', ['-R', String(nobody), own.dataDir]);
  process.seteuid?.(nobody);
  try {
    const { notRemoved, removed } = await keep(own, 4);
    assert.equal(notRemoved, `${own.place} is not the service's account's to read and write.`);
    assert.equal(removed, 0);
  } finally {
    process.seteuid?.(0);
  }
  assert.equal(readdirSync(own.place).length, 4);
});

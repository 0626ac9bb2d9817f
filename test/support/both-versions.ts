/** Upgrades of a data directory: this version and a later one take it in turn. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { temporaryDirectory } from './directory.ts';
import { laterVersion, newest } from './schemas.ts';

/** Starts this version, by itself or with the backup that it needs then, and the later one. */
export async function startBoth(dataDir: string): Promise<'before' | 'after'> {
  const all = ['ada@x.example', 'bob@x.example'];
  const state = await openStore(dataDir).then(
    async (store) => {
      assert.deepEqual(await people(store), all);
      return 'before' as const;
    },
    async (error: Error) => {
      assert.match(error.message, /was written by a newer version/);
      using directory = temporaryDirectory();
      const back = join(directory.path, 'data');
      restoreBackup(join(dataDir, 'before-upgrade', `${newest}.backup`), back, '2030-01-01T00:00:00.000Z');
      assert.deepEqual(await people(await openStore(back)), all);
      return 'after' as const;
    },
  );
  assert.deepEqual(await people(await openStore(dataDir, { schema: laterVersion })), all);
  assert.deepEqual(readdirSync(join(dataDir, 'before-upgrade')), [`${newest}.backup`]);
  return state;
}

async function people(store: Store): Promise<string[]> {
  const rows = await store.read.selectFrom('users').select('primary_email').orderBy('id').execute();
  await store.close();
  return rows.map((row) => row.primary_email ?? '').slice(1);
}

/** A disk of its own, of so many MiB, in memory; it takes root. */
export function smallDisk(mebibytes: number): Disposable & { path: string } {
  const directory = temporaryDirectory();
  const { path } = directory;
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]);
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', path]);
      directory[Symbol.dispose]();
    },
  };
}

/** Writes a file until its disk is full. */
export function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  for (const bytes of [2 ** 20, 4096])
    assert.throws(() => {
      for (;;) writeSync(descriptor, Buffer.alloc(bytes));
    }, /ENOSPC/);
  closeSync(descriptor);
}

/** A database of SQLite's that is migrated already, made once for all files of a run: the steps cost more than most tests. */
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { temporaryDirectory } from './directory.ts';

/** Puts a copy into a new data directory. Where the file runs by itself, the store makes its own. */
export async function placeDatabase(dataDir: string): Promise<void> {
  const shared = process.env['ANDROMEDA_TEST_SHARED'];
  if (shared === undefined) return;
  const template = join(shared, 'andromeda.db');
  if (!existsSync(template)) await makeTemplate(template);
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  copyFileSync(template, join(dataDir, 'andromeda.db'));
}

/** Several files may do so at once, and each finds one that is whole. */
async function makeTemplate(template: string): Promise<void> {
  using directory = temporaryDirectory();
  await (await openStore(directory.path)).close();
  const beside = `${template}-${process.pid}`;
  copyFileSync(join(directory.path, 'andromeda.db'), beside);
  renameSync(beside, template);
}

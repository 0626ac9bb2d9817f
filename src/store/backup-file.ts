/**
 * What a backup is: one SQLite file, the database as it was at one instant, with two tables more: the other files that a
 * new machine cannot do without, and where it is from. Those of the data directory (keys, the state of simulated
 * clusters) go by their path in it, those elsewhere (the configuration, what clusters name) by their absolute path. So it
 * can be opened, checked and looked into with SQLite's own tools. It is as secret as the data directory.
 */
import { globSync, lstatSync } from 'node:fs';
import { isAbsolute, join, normalize } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { withClusterPaths } from '../domain/lab-paths.ts';
import { type DatabaseFile, isDatabaseError } from './engine.ts';
import { migrations } from './migrations/index.ts';

export interface BackupInfo {
  /** RFC 3339. */
  madeAt: string;
  /** Of the program. */
  version: string;
}

/** `Andr`: what kind of file it is. */
const backupKind = 0x416e6472;

/** Homes of simulated login nodes are a cluster's disk, not the installation. */
const kept = ['*.json', 'keys/*', 'clusters/**/*'];
const left = ['clusters/*/login/home/**', '**/*.new'];

/** The files of a data directory that go into a backup beside the database, relative to it. */
export function listKeptFiles(dataDir: string): string[] {
  return globSync(kept, { cwd: dataDir, exclude: left })
    .filter((path) => lstatSync(join(dataDir, path)).isFile())
    .sort();
}

/** Makes a backup of a copy of the database. */
export function addFiles(
  database: DatabaseFile,
  files: Iterable<{ path: string; content: Buffer }>,
  { madeAt, version }: BackupInfo,
): void {
  database.transaction(() => {
    database.run('create table backup_info (made_at text not null, version text not null) strict');
    database.run('create table backup_files (path text primary key, content blob not null) strict');
    database.run('insert into backup_info values (?, ?)', madeAt, version);
    for (const { path, content } of files)
      database.run('insert into backup_files values (?, ?)', path, content);
    database.setKind(backupKind);
  });
}

/** The files in a backup, one after the other. Throws `invalid_request` for a name that leads out of its place. */
export function* readFiles(database: DatabaseFile): Generator<{ path: string; content: Buffer }> {
  const rows = database.rows<{ path: string; content: Buffer }>('select path, content from backup_files');
  for (const row of rows) {
    const { path } = row;
    const isPlain = normalize(path) === path && !path.split('/').includes('..') && !path.endsWith('/');
    if (!isPlain || !(isAbsolute(path) || /^(?:[^/]+\.json|(?:keys|clusters)\/.+)$/.test(path))) {
      const message = `The backup holds a file by the name ${JSON.stringify(path)}.`;
      throw new DomainError('invalid_request', message);
    }
    yield row;
  }
}

/** The files that clusters name, by their absolute paths. */
export function listClusterFiles(database: DatabaseFile): string[] {
  const files = new Set<string>();
  for (const { driver } of database.rows<{ driver: string }>('select driver from clusters')) {
    withClusterPaths(JSON.parse(driver), (path) => {
      if (isAbsolute(path)) files.add(path);
      return path;
    });
  }
  return [...files].sort();
}

/** Makes a plain database of a backup, without a trace of the files that were in it. */
export function removeFiles(database: DatabaseFile): void {
  database.transaction(() => {
    database.run('drop table backup_files');
    database.run('drop table backup_info');
    database.setKind(0);
  });
}

/**
 * Says where a backup is from, when all of it is whole and this version can read it. Throws `invalid_request` with a
 * sentence that begins with `name`.
 */
export function checkBackup(database: DatabaseFile, name: string): BackupInfo {
  const fault = faultOf(database);
  if (typeof fault !== 'string') return fault;
  throw new DomainError('invalid_request', `${name} ${fault}`);
}

function faultOf(database: DatabaseFile): BackupInfo | string {
  const damaged = 'is damaged; take another backup.';
  try {
    if (!isBackup(database)) return 'is not a backup of Andromeda.';
    if (!database.isWhole()) return damaged;
    const steps = [...database.rows<{ name: string }>('select name from kysely_migration')];
    if (steps.some((step) => !(step.name in migrations)))
      return 'was made by a newer version of Andromeda; restore it with that one.';
    const [info] = database.rows<BackupInfo>('select made_at as madeAt, version from backup_info');
    return info ?? damaged;
  } catch (error) {
    if (isDatabaseError(error)) return damaged;
    throw error;
  }
}

/** Whether a database is a backup. */
export function isBackup(database: DatabaseFile): boolean {
  return database.kind() === backupKind;
}

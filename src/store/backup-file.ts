/**
 * What a backup is: one SQLite file, the database as it was at one instant, with two tables more: the other files that a
 * new machine cannot do without, and where it is from. Those of the data directory (keys, the state of simulated
 * clusters) go by their path in it, those elsewhere (the configuration, what clusters name) by their absolute path. So it
 * can be opened, checked and looked into with SQLite's own tools. It is as secret as the data directory.
 */
import { globSync, lstatSync } from 'node:fs';
import { isAbsolute, join, normalize } from 'node:path';
import Database from 'better-sqlite3';
import { DomainError } from '../domain/error.ts';
import { withClusterPaths } from '../domain/lab-paths.ts';
import { migrations } from './migrations/index.ts';

export interface BackupInfo {
  /** RFC 3339. */
  madeAt: string;
  /** Of the program. */
  version: string;
}

/** `Andr`, where SQLite keeps what kind of file it is. */
const applicationId = 0x416e6472;

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
  database: Database.Database,
  files: Iterable<{ path: string; content: Buffer }>,
  { madeAt, version }: BackupInfo,
): void {
  database.transaction(() => {
    database.exec(`
      create table backup_info (made_at text not null, version text not null) strict;
      create table backup_files (path text primary key, content blob not null) strict;`);
    database.prepare('insert into backup_info values (?, ?)').run(madeAt, version);
    const insert = database.prepare('insert into backup_files values (?, ?)');
    for (const { path, content } of files) insert.run(path, content);
  })();
  database.pragma(`application_id = ${applicationId}`);
}

/** The files in a backup, one after the other. Throws `invalid_request` for a name that leads out of its place. */
export function* readFiles(database: Database.Database): Generator<{ path: string; content: Buffer }> {
  const rows = database.prepare<[], { path: string; content: Buffer }>(
    'select path, content from backup_files',
  );
  for (const row of rows.iterate()) {
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
export function listClusterFiles(database: Database.Database): string[] {
  const files = new Set<string>();
  for (const driver of database.prepare<[], string>('select driver from clusters').pluck().all()) {
    withClusterPaths(JSON.parse(driver), (path) => {
      if (isAbsolute(path)) files.add(path);
      return path;
    });
  }
  return [...files].sort();
}

/** Makes a plain database of a backup, without a trace of the files that were in it. */
export function removeFiles(database: Database.Database): void {
  database.pragma('secure_delete = on');
  database.exec('drop table backup_files; drop table backup_info');
  database.pragma('application_id = 0');
}

/**
 * Says where a backup is from, when all of it is whole and this version can read it. Throws `invalid_request` with a
 * sentence that begins with `name`.
 */
export function checkBackup(database: Database.Database, name: string): BackupInfo {
  const fault = faultOf(database);
  if (typeof fault !== 'string') return fault;
  throw new DomainError('invalid_request', `${name} ${fault}`);
}

function faultOf(database: Database.Database): BackupInfo | string {
  const damaged = 'is damaged; take another backup.';
  try {
    if (!isBackup(database)) return 'is not a backup of Andromeda.';
    if (database.pragma('integrity_check', { simple: true }) !== 'ok') return damaged;
    if ((database.pragma('foreign_key_check') as unknown[]).length > 0) return damaged;
    const steps = database.prepare<[], { name: string }>('select name from kysely_migration').all();
    if (steps.some((step) => !(step.name in migrations)))
      return 'was made by a newer version of Andromeda; restore it with that one.';
    const info = database.prepare<[], BackupInfo>('select made_at as madeAt, version from backup_info');
    return info.get() ?? damaged;
  } catch (error) {
    if (error instanceof Database.SqliteError) return damaged;
    throw error;
  }
}

/** Whether a file of SQLite is a backup. */
export function isBackup(database: Database.Database): boolean {
  try {
    return database.pragma('application_id', { simple: true }) === applicationId;
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code === 'SQLITE_NOTADB') return false;
    throw error;
  }
}

/**
 * The format of a backup: one SQLite file, the database as of one instant, with two more tables: the other files that a
 * new machine needs, and where the backup is from. Files of the data directory (keys, the state of simulated clusters) are
 * stored by their path in it, others (the configuration, files that clusters name) by their absolute path. So a backup can
 * be opened, checked and queried with SQLite's own tools; a manifest with a SHA-256 of each part, signed by the
 * installation's key for the audit trail, shows whether it is unchanged. It is as secret as the data directory.
 */
import { createHash } from 'node:crypto';
import { globSync, lstatSync } from 'node:fs';
import { isAbsolute, join, normalize } from 'node:path';
import { type AuditKey, backupText, isSigned } from '../../domain/audit/audit.ts';
import { withClusterPaths } from '../../domain/clusters/lab-paths.ts';
import { DomainError } from '../../domain/error.ts';
import { type DatabaseFile, isDatabaseError } from '../engine/engine.ts';
import { ancientText, schemaState } from '../engine/migrate.ts';

interface BackupManifest {
  madeAt: string;
  version: string;
  /** SHA-256 in hex, by name: `schema`, `table users` …, `file keys/…` …. */
  parts: Record<string, string>;
}

/** The row of `backup_info`. */
interface BackupRow {
  made_at: string;
  version: string;
  manifest: string | null;
  key: string | null;
  signature: string | null;
}

export interface Seal {
  parts: number;
  /** The key that signed the manifest; undefined: none, as the installation had no key yet. */
  key: string | undefined;
}

const own = ['backup_info', 'backup_files'];

/** Compares a backup with its manifest. Returns a difference as a string, the end of a sentence about the backup. */
function compareWithManifest(database: DatabaseFile, row: BackupRow): Seal | string {
  const { manifest: text, key, signature } = row;
  const manifest = readManifest(text ?? '');
  if (!manifest || manifest.madeAt !== row.made_at || manifest.version !== row.version)
    return 'was changed after it was made (the manifest); take another backup.';
  const isSealed = (key ?? signature ?? null) !== null;
  if (isSealed && !isSigned(backupText(text ?? ''), { key: key ?? '', signature: signature ?? '' }))
    return 'was changed after it was made (the signature of its manifest is wrong); take another backup.';
  const found = partsOf(database);
  const names = new Set([...Object.keys(found), ...Object.keys(manifest.parts)]);
  const changed = [...names].filter((name) => found[name] !== manifest.parts[name]);
  if (changed.length > 0) {
    const listed = changed.slice(0, 3).join(', ');
    return `was changed after it was made (${listed}${changed.length > 3 ? ` and ${changed.length - 3} more` : ''}); take another backup.`;
  }
  return { parts: names.size, key: key ?? undefined };
}

function readManifest(text: string): BackupManifest | undefined {
  try {
    const manifest = JSON.parse(text) as BackupManifest | null;
    return typeof manifest?.parts === 'object' && manifest.parts !== null ? manifest : undefined;
  } catch {
    return undefined;
  }
}

function partsOf(database: DatabaseFile): Record<string, string> {
  const schema = [
    ...database.rows<{ type: string; name: string; sql: string | null }>(
      'select type, name, sql from sqlite_schema order by type, name',
    ),
  ].filter(({ name }) => !own.some((table) => name.includes(table)));
  const parts: Record<string, string> = { schema: sha256(JSON.stringify(schema)) };
  for (const { name } of schema.filter(({ type }) => type === 'table'))
    parts[`table ${name}`] = sumOfRows(database, name);
  const files = database.rows<{ path: string; content: Buffer }>('select path, content from backup_files');
  for (const { path, content } of files) parts[`file ${path}`] = sha256(content);
  return parts;
}

/** Hashes the rows in the table's own order: an index could give another order in another version of SQLite. */
function sumOfRows(database: DatabaseFile, table: string): string {
  const hash = createHash('sha256');
  const rows = database.rows<object>(`select * from "${table.replaceAll('"', '""')}" not indexed`);
  for (const row of rows) {
    const values = Object.values(row).map((value) => (value instanceof Buffer ? [sha256(value)] : value));
    hash.update(`${JSON.stringify(values)}\n`);
  }
  return hash.digest('hex');
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export interface BackupInfo {
  madeAt: string;
  version: string;
}

export interface CheckedBackup extends BackupInfo {
  seal: Seal;
}

/** `Andr`: the application ID in the file's header. */
const backupKind = 0x416e6472;

/** Homes of simulated login nodes are a cluster's disk, not the installation. */
const kept = ['*.json', 'keys/*', 'clusters/**/*'];
const left = ['clusters/*/login/home/**', '**/*.new'];

/** The files of a data directory that go into a backup with the database, by paths relative to the directory. */
export function listKeptFiles(dataDir: string): string[] {
  return globSync(kept, { cwd: dataDir, exclude: left })
    .filter((path) => lstatSync(join(dataDir, path)).isFile())
    .sort();
}

/** Makes a backup of a copy of the database. `sign` is undefined where the installation has no key yet. */
export function addFiles(
  database: DatabaseFile,
  files: Iterable<{ path: string; content: Buffer }>,
  { madeAt, version }: BackupInfo,
  sign: AuditKey['signBackup'] | undefined,
): void {
  database.transaction(() => {
    database.run(
      'create table backup_info (made_at text not null, version text not null, manifest text, key text, signature text) strict',
    );
    database.run('create table backup_files (path text primary key, content blob not null) strict');
    for (const { path, content } of files)
      database.run('insert into backup_files values (?, ?)', path, content);
    // The manifest covers all of the backup but the row that is to hold it.
    const manifest = JSON.stringify({ madeAt, version, parts: partsOf(database) } satisfies BackupManifest);
    const { key = null, signature = null } = sign?.(manifest) ?? {};
    database.run('insert into backup_info values (?, ?, ?, ?, ?)', madeAt, version, manifest, key, signature);
    database.setKind(backupKind);
  });
}

/** The files in a backup, one after the other. Throws `invalid_request` for a path that a backup may not hold. */
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
 * Returns where a backup is from, if it is whole, unchanged since it was made, and readable by this version. Throws
 * `invalid_request` with a sentence that begins with `name`.
 */
export function checkBackup(database: DatabaseFile, name: string): CheckedBackup {
  const fault = faultOf(database);
  if (typeof fault !== 'string') return fault;
  throw new DomainError('invalid_request', `${name} ${fault}`);
}

function faultOf(database: DatabaseFile): CheckedBackup | string {
  const damaged = 'is damaged; take another backup.';
  try {
    if (!isBackup(database)) return 'is not a backup of Andromeda.';
    if (!database.isWhole()) return damaged;
    const made = [...database.rows<{ name: string }>('select name from kysely_migration')];
    const state = schemaState(made.map(({ name }) => name));
    if (state === 'ancient') return `${ancientText}; restore it with that version.`;
    if (state === 'newer') return 'was made by a newer version of Andromeda; restore it with that one.';
    const [row] = [...database.rows<BackupRow>('select * from backup_info')];
    if (!row) return damaged;
    const seal = compareWithManifest(database, row);
    return typeof seal === 'string' ? seal : { madeAt: row.made_at, version: row.version, seal };
  } catch (error) {
    if (isDatabaseError(error)) return damaged;
    throw error;
  }
}

export function isBackup(database: DatabaseFile): boolean {
  return database.kind() === backupKind;
}

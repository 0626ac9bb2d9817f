/**
 * Copies an installation from SQLite's file to a PostgreSQL, or back: tables, and data that is in files on one side.
 * The target gets all or nothing; the source is read in one snapshot, and its rows stay.
 */
import { closeSync, existsSync, openSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql, type Transaction } from 'kysely';
import { findBreak } from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { describePostgres, parsePostgresUrl } from '../../lib/postgres-url.ts';
import type { SecretsKeys } from '../../lib/secrets-key.ts';
import { flush } from '../../lib/whole-file.ts';
import { findCheckpoint, findLastSeq, listAuditEntries } from '../audit/audit.ts';
import { listManagedHosts, type ManagedHost, noteManagedHost } from '../clusters/cluster-sides.ts';
import {
  type Connections,
  endWrites,
  engineNameOf,
  listTableShapes,
  openSqlite,
  type TableShape,
  versionOf,
} from '../engine/engine.ts';
import type { Tx } from '../engine/index.ts';
import { migrate } from '../engine/migrate.ts';
import type { Schema } from '../generated/schema.ts';
import { putSecret, readSecrets } from '../servers/secrets.ts';
import {
  type CopyProgress,
  compareTables,
  copyError,
  copyOrder,
  copyTables,
  findWrittenTable,
  notEmpty,
  refuseLeftLog,
  requireNoServers,
  requireThisVersion,
} from './copy-tables.ts';
import { openDatabaseFile, openDataDir } from './open-store.ts';
import { openStaging } from './restore.ts';

/** Data that is in files of a data directory, and in tables where servers share a database. */
export interface FilesAndTables {
  secrets: ReadonlyMap<string, string>;
  /** Hosts with something of ours, by cluster: as the driver describes each. */
  managedHosts: ReadonlyMap<string, readonly ManagedHost[]>;
}

export interface CopyOptions {
  dataDir: string;
  database: string;
  keys: SecretsKeys;
  onProgress(progress: CopyProgress): void;
  signal: AbortSignal;
}

export interface Copied {
  from: string;
  to: string;
  tables: number;
  rows: number;
  auditEntries: number;
  secrets: number;
  isRepeated?: boolean;
}

const databaseName = 'andromeda.db';
const auditPage = 500;

/** Copies SQLite's file, and `read()`, to the PostgreSQL. Throws a `DomainError` with a sentence. */
export async function copyToPostgres(options: CopyOptions, read: () => FilesAndTables): Promise<Copied> {
  const { dataDir, database, keys } = options;
  const file = join(dataDir, databaseName);
  const to = describePostgres(parsePostgresUrl(database));
  return withServer(options, async (target) => {
    if (!existsSync(file)) throw new DomainError('not_found', `There is no database ${file}.`);
    await using source = openDatabaseFile(file);
    await source.migrating((db) => requireThisVersion(db, file));
    const files = read();
    const sides = { source, target, options, from: file, to };
    const found = async (tx: Kysely<Schema>) => (await readSecrets(tx, keys)).size;
    return await copy(sides, found, async (tx) => {
      for (const [name, text] of files.secrets)
        await putSecret({ db: tx, now: Date.now() }, keys.keys[0], name, { text, version: 1 });
      for (const [clusterId, hosts] of files.managedHosts)
        for (const { address, host } of hosts)
          await noteManagedHost({ db: tx } as Tx, clusterId, { address, host });
      return files.secrets.size;
    });
  });
}

/** Copies the PostgreSQL to SQLite's file, and gives `write` the data for files. Throws a `DomainError` with a sentence. */
export async function copyToSqlite(
  options: CopyOptions,
  write: (content: FilesAndTables) => void,
): Promise<Copied> {
  const { dataDir, database, keys } = options;
  const file = join(dataDir, databaseName);
  const from = describePostgres(parsePostgresUrl(database));
  return withServer(options, async (source) => {
    if (existsSync(file)) return requireCopied({ source, keys, from, file });
    refuseLeftLog(file);
    // Throws for a wrong key before anything is copied.
    await readSecrets(source.reader, keys);
    using staging = openStaging(dataDir, '.migrate');
    const made = join(staging.path, databaseName);
    const { copied, version } = await copyToNewFile(made, { source, options, from, to: file });
    const content = await readFilesAndTables(source, keys);
    // From here on, a server that was suspended meanwhile cannot write anything that the copy would lack.
    if (version !== undefined) await endWrites(source, version);
    write(content);
    flush(made);
    renameSync(made, file);
    flush(dataDir);
    await requireArrived(file, copied);
    return { ...copied, secrets: content.secrets.size };
  });
}

/** `version`: that of the source in the snapshot that was copied. */
async function copyToNewFile(
  file: string,
  from: Omit<CopySides, 'target'>,
): Promise<{ copied: Copied; version: number | undefined }> {
  closeSync(openSync(file, 'wx', 0o600));
  await using target = openSqlite(file);
  await target.migrating((db) => migrate(db, file));
  const seen: { version?: number | undefined } = {};
  const copied = await copy({ ...from, target }, undefined, async (_tx, moment) => {
    seen.version = await versionOf(moment);
    return 0;
  });
  return { copied, version: seen.version };
}

/** Checks the audit trail of the file once more, at its final path. */
async function requireArrived(file: string, { auditEntries }: Copied): Promise<void> {
  await using database = openDatabaseFile(file);
  const seq = await findLastSeq(database.reader);
  const first = (await findCheckpoint(database.reader))?.seq ?? 0;
  if (seq - first !== auditEntries)
    throw new DomainError(
      'invalid_state',
      `${file} is not what was copied: its audit trail ends with entry ${seq}. Move it and its -wal away, and repeat this.`,
    );
}

/** For a file that exists already: resolves if it is the copy of a run that could not report it, and else throws. */
async function requireCopied({
  source,
  keys,
  from,
  file,
}: {
  source: Connections;
  keys: SecretsKeys;
  from: string;
  file: string;
}): Promise<Copied> {
  const moveAway = `mv ${file} ${file}.before${existsSync(`${file}-wal`) ? `, and mv ${file}-wal ${file}.before-wal` : ''}`;
  if ((await versionOf(source.reader)) !== undefined)
    throw new DomainError(
      'invalid_state',
      `There is a database ${file} already, perhaps from before. Move it away first: ${moveAway}`,
    );
  await using target = openDatabaseFile(file);
  await target.migrating((db) => requireThisVersion(db, file));
  const shapes = copyOrder(await shapesOf(target.reader));
  const rows = await source.readSnapshot((moment) => compareTables(moment, target.reader, shapes));
  if (rows === undefined)
    throw new DomainError(
      'invalid_state',
      `There is a database ${file} already, and ${from} was copied before: it is that copy, in which a service has written since, or an older one. If it is the copy, start the service with it. To copy once more, move it away first: ${moveAway}`,
    );
  const auditEntries = await requireWholeTrail(target.reader, file, async () => {});
  const secrets = (await readSecrets(source.reader, keys)).size;
  return {
    from,
    to: file,
    tables: shapes.length,
    rows,
    auditEntries,
    secrets,
    isRepeated: true,
  };
}

/** Runs `body` with the data directory locked, and a PostgreSQL of this version that no server uses. */
async function withServer<T>(
  { dataDir, database }: CopyOptions,
  body: (server: Connections) => Promise<T>,
): Promise<T> {
  const serverId = newId('server', Date.now());
  const { connections, unlock } = await openDataDir(dataDir, serverId, { database, isCopying: true });
  try {
    await requireNoServers(connections.reader, serverId);
    return await body(connections);
  } catch (error) {
    const server = describePostgres(parsePostgresUrl(database));
    throw copyError(error, { server, file: join(dataDir, databaseName) });
  } finally {
    await connections[Symbol.asyncDispose]();
    unlock?.();
  }
}

interface CopySides {
  source: Connections;
  target: Connections;
  options: CopyOptions;
  from: string;
  to: string;
}

/**
 * `more` writes further data in the same transaction, read in the same snapshot, and resolves to the number of secrets
 * in it. `found` counts the secrets in a target that has everything already.
 */
async function copy(
  sides: CopySides,
  found: ((tx: Kysely<Schema>) => Promise<number>) | undefined,
  more: (tx: Transaction<Schema>, moment: Kysely<Schema>) => Promise<number>,
): Promise<Copied> {
  const { source, target, options, from, to } = sides;
  return await source.readSnapshot((moment) =>
    target.transact(
      async (tx) => {
        const shapes = copyOrder(await shapesOf(moment, tx));
        const written = await findWrittenTable(tx, shapes);
        const done = async (rows: number, secrets: number): Promise<Copied> => {
          const auditEntries = await requireWholeTrail(tx, to, () => sql`select 1`.execute(moment));
          return { from, to, tables: shapes.length, rows, auditEntries, secrets };
        };
        if (written !== undefined) {
          const rows = found && (await compareTables(moment, tx, shapes));
          if (!found || rows === undefined) throw notEmpty(to, written);
          return { ...(await done(rows, await found(tx))), isRepeated: true };
        }
        const counts = await copyTables(moment, tx, {
          shapes,
          onProgress(progress) {
            options.signal.throwIfAborted();
            options.onProgress(progress);
          },
        });
        const rows = [...counts.values()].reduce((sum, count) => sum + count, 0);
        return done(rows, await more(tx, moment));
      },
      { flush: true },
    ),
  );
}

/** The tables of the side that is SQLite's: both have the same. */
async function shapesOf(...sides: Kysely<Schema>[]): Promise<TableShape[]> {
  const side = sides.find((db) => engineNameOf(db) === 'sqlite');
  if (!side) throw new Error('neither database is a file');
  return listTableShapes(side);
}

/**
 * Verifies all of the trail that has arrived; resolves to the number of entries. `keepSource` queries the source, as
 * PostgreSQL ends a transaction that is idle for a while.
 */
async function requireWholeTrail(
  db: Kysely<Schema>,
  to: string,
  keepSource: () => Promise<unknown>,
): Promise<number> {
  const checkpoint = await findCheckpoint(db);
  let last = checkpoint ?? { seq: 0, hash: '' };
  let count = 0;
  for (;;) {
    await keepSource();
    const page = await listAuditEntries(db, {}, { after: last.seq, limit: auditPage });
    const broken = findBreak(last, page);
    if (broken)
      throw new DomainError(
        'invalid_state',
        `Entry ${broken.seq} of the audit trail does not follow from the one before, here or as it arrived in ${to}. Nothing was copied; \`andromeda admin audit verify\` says more.`,
      );
    count += page.length;
    const end = page.at(-1);
    if (!end || page.length < auditPage) return count;
    last = end;
  }
}

async function readFilesAndTables({ reader }: Connections, keys: SecretsKeys): Promise<FilesAndTables> {
  const managedHosts = new Map<string, ManagedHost[]>();
  for (const { id } of await reader.selectFrom('clusters').select('id').orderBy('id').execute()) {
    const hosts = await listManagedHosts(reader, id);
    if (hosts.length > 0) managedHosts.set(id, hosts);
  }
  return { secrets: await readSecrets(reader, keys), managedHosts };
}

/**
 * An installation from SQLite's file to a PostgreSQL, or back: the tables, and with them what is in files on one side and in the
 * database on the other. The target has all of it or nothing; the source is read in one moment and not changed.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql, type Transaction } from 'kysely';
import { findBreak } from '../domain/audit.ts';
import { DomainError } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import { serverLifeMs } from '../domain/server.ts';
import { describePostgres, parsePostgresUrl } from '../lib/postgres-url.ts';
import type { SecretsKeys } from '../lib/secrets-key.ts';
import { listAuditEntries } from './audit.ts';
import { findCheckpoint } from './audit-heads.ts';
import { createNulMender, type SignRedaction } from './copy-nul.ts';
import { type CopyProgress, copyOrder, copyTables, findWrittenTable } from './copy-tables.ts';
import {
  type Connections,
  endWrites,
  engineNameOf,
  listTableShapes,
  openSqlite,
  type TableShape,
  versionOf,
} from './engine.ts';
import { faultMessage } from './fault.ts';
import type { Tx } from './index.ts';
import { listManagedHosts, type ManagedHost, noteManagedHost } from './managed-hosts.ts';
import { isMigrated, migrate } from './migrate.ts';
import { openDataDir } from './open-data-dir.ts';
import type { Schema } from './schema.ts';
import { importSecret, readSecrets } from './secrets.ts';
import { listServers } from './servers.ts';

/** What is in files of a data directory, and in tables where servers share a database. */
export interface FilesAndTables {
  /** By name. */
  secrets: ReadonlyMap<string, string>;
  /** Hosts with something of ours, by cluster: as the driver describes each. */
  managedHosts: ReadonlyMap<string, readonly ManagedHost[]>;
}

export interface CopyOptions {
  dataDir: string;
  /** The URL of the PostgreSQL. */
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
  /** Rows with NUL in them, which PostgreSQL does not store, by table. */
  mended: ReadonlyMap<string, number>;
}

const databaseName = 'andromeda.db';
const auditPage = 500;

/**
 * Copies SQLite's file, and `read()`, to the PostgreSQL. `signerOf` has the key that vouches for entries of the audit trail that
 * cannot stay as they are. Throws a `DomainError` with a sentence.
 */
export async function copyToPostgres(
  options: CopyOptions,
  read: () => FilesAndTables,
  signerOf: (secrets: FilesAndTables['secrets']) => SignRedaction | undefined,
): Promise<Copied> {
  const { dataDir, database, keys } = options;
  const file = join(dataDir, databaseName);
  const to = describePostgres(parsePostgresUrl(database));
  return withServer(options, async (target) => {
    if (!existsSync(file)) throw new DomainError('not_found', `There is no database ${file}.`);
    const source = openSqlite(file);
    try {
      await source.migrating(async (db) => {
        if (!(await isMigrated(db))) throw otherVersion(file);
      });
      const files = read();
      const sign = signerOf(files.secrets);
      return await copy({ source, target, options, from: file, to, sign }, async (tx) => {
        for (const [name, text] of files.secrets)
          await importSecret({ db: tx, now: Date.now() }, keys, name, text);
        for (const [clusterId, hosts] of files.managedHosts)
          for (const { address, host } of hosts)
            await noteManagedHost({ db: tx } as Tx, clusterId, { address, host });
        return files.secrets.size;
      });
    } finally {
      await source.close();
    }
  });
}

/** Copies the PostgreSQL to SQLite's file, and gives `write` what goes into files. Throws a `DomainError` with a sentence. */
export async function copyToSqlite(
  options: CopyOptions,
  write: (content: FilesAndTables) => void,
): Promise<Copied> {
  const { dataDir, database, keys } = options;
  const file = join(dataDir, databaseName);
  const from = describePostgres(parsePostgresUrl(database));
  return withServer(options, async (source) => {
    if (existsSync(file))
      throw new DomainError(
        'invalid_state',
        `There is a database ${file} already, perhaps from before. Move it away first: mv ${file} ${file}.before`,
      );
    const staging = join(dataDir, '.migrate');
    // One that was interrupted has left it behind; nobody else is here.
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    try {
      const made = join(staging, databaseName);
      closeSync(openSync(made, 'wx', 0o600));
      const target = openSqlite(made);
      let copied: Copied;
      const seen: { version?: number | undefined } = {};
      try {
        await target.migrating((db) => migrate(db, made));
        copied = await copy(
          { source, target, options, from, to: file, sign: undefined },
          async (_tx, moment) => {
            seen.version = await versionOf(moment);
            return 0;
          },
        );
      } finally {
        await target.close();
      }
      const content = await readFilesAndTables(source, keys);
      // From here on, a server that stood still meanwhile can write nothing that the copy would lack.
      await endWritesSince(seen.version, source, from);
      write(content);
      flush(made);
      renameSync(made, file);
      flush(dataDir);
      return { ...copied, secrets: content.secrets.size };
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  });
}

/** `version`: of what was copied; undefined where writes were ended by a copying that was cut short later. */
async function endWritesSince(version: number | undefined, source: Connections, from: string): Promise<void> {
  if (version === undefined) return;
  try {
    await endWrites(source, version);
  } catch (error) {
    const fault = faultMessage(error);
    if (fault === undefined) throw error;
    throw new DomainError('service_unavailable', `${from} cannot be written: ${fault}. Repeat this.`, {
      cause: error,
    });
  }
}

/** Holds the data directory, and has the PostgreSQL of this version, which no server uses. */
async function withServer<T>(
  { dataDir, database }: CopyOptions,
  body: (server: Connections) => Promise<T>,
): Promise<T> {
  const serverId = newId('server', Date.now());
  const { connections, unlock } = await openDataDir(dataDir, serverId, { database, isCopying: true });
  try {
    await requireNoServers(connections.reader, serverId);
    return await body(connections);
  } finally {
    await connections.close();
    unlock?.();
  }
}

/** `more`: what goes into the same transaction, and is asked of the same moment; resolves to how many secrets that were. */
async function copy(
  sides: {
    source: Connections;
    target: Connections;
    options: CopyOptions;
    from: string;
    to: string;
    sign: SignRedaction | undefined;
  },
  more: (tx: Transaction<Schema>, moment: Kysely<Schema>) => Promise<number>,
): Promise<Copied> {
  const { source, target, options, from, to, sign } = sides;
  try {
    return await source.readSnapshot((moment) =>
      target.transact(
        async (tx) => {
          const shapes = copyOrder(await shapesOf(moment, tx));
          const written = await findWrittenTable(tx, shapes);
          if (written !== undefined) throw notEmpty(to, written);
          const mender = await createNulMender(moment, sign);
          const counts = await copyTables(moment, tx, {
            shapes,
            mend: mender.mend,
            onProgress(progress) {
              options.signal.throwIfAborted();
              options.onProgress(progress);
            },
          });
          const auditEntries = await requireWholeTrail(tx, to, () => sql`select 1`.execute(moment));
          const secrets = await more(tx, moment);
          const rows = [...counts.values()].reduce((sum, count) => sum + count, 0);
          const mended = mender.counts;
          return { from, to, tables: shapes.length, rows, auditEntries, secrets, mended };
        },
        { flush: true },
      ),
    );
  } catch (error) {
    const fault = faultMessage(error);
    if (fault === undefined) throw error;
    throw new DomainError('service_unavailable', `${to} cannot be written: ${fault}. Nothing was copied.`, {
      cause: error,
    });
  }
}

/** Of the side that is SQLite's: both have the same. */
async function shapesOf(...sides: Kysely<Schema>[]): Promise<TableShape[]> {
  const side = sides.find((db) => engineNameOf(db) === 'sqlite');
  if (!side) throw new Error('neither database is a file');
  return listTableShapes(side);
}

/**
 * Reads all of the trail that has arrived. Resolves to how many entries that are. `keepSource`: a PostgreSQL ends a transaction in
 * which nothing is asked for a while.
 */
async function requireWholeTrail(
  db: Transaction<Schema>,
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

function notEmpty(name: string, table: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${name} is not empty: there are rows in ${table}. Nothing was copied. Name another, empty database.`,
  );
}

function otherVersion(file: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${file} is of an older version of Andromeda. Start this version with it once, without \`database\`, stop it, and repeat this.`,
  );
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Throws `invalid_state` where a server uses the database. */
async function requireNoServers(read: Kysely<Schema>, id: string): Promise<void> {
  const servers = await listServers({ read, server: { id, isAlone: false } });
  const live = servers.filter(({ isLive }) => isLive).map(({ name }) => name);
  if (live.length === 0) return;
  throw new DomainError(
    'invalid_state',
    `${live.join(', ')} ${live.length === 1 ? 'serves' : 'serve'} from this database. Stop every server first; one that was killed counts as gone after ${serverLifeMs / 1000} s.`,
  );
}

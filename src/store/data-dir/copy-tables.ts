/**
 * Copies the tables of one database into those of another, of whichever engines: page by page in the order of primary
 * keys, so that only a page is in memory, and each table after those that it refers to.
 */
import { rmSync, statSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { type Kysely, sql, type Transaction } from 'kysely';
import { DomainError } from '../../domain/error.ts';
import { serverLifeMs } from '../../domain/server.ts';
import {
  CommitInDoubt,
  faultMessage,
  isDatabaseError,
  isPostgresError,
  type TableShape,
} from '../engine/engine.ts';
import { listMigrations, refuseAncient, schemaState } from '../engine/migrate.ts';
import { type AnyRow, tablesOf } from '../engine/rows.ts';
import type { Schema } from '../generated/schema.ts';
import { listServers } from '../servers/servers.ts';

/** Tables that belong to one database and its servers, and would be wrong in another. */
const left = new Set([
  'kysely_migration',
  'kysely_migration_lock',
  'leader',
  'managed_hosts',
  'schema_support',
  'secrets',
  'servers',
]);
/** Tables that have rows in a new database; of `users`, the system's own person. */
const filled = new Set(['counters', 'users']);
/** Copied last: triggers write to it while others are copied. */
const last = 'member_versions';
const pageSize = 250;

/** The tables in the order in which they were made, which PostgreSQL requires: each after those that it refers to. */
export function copyOrder(shapes: readonly TableShape[]): TableShape[] {
  const copied = shapes.filter(({ name }) => !left.has(name));
  return [...copied.filter(({ name }) => name !== last), ...copied.filter(({ name }) => name === last)];
}

export async function findWrittenTable(
  db: Kysely<Schema>,
  shapes: readonly TableShape[],
): Promise<string | undefined> {
  const users = await db.selectFrom('users').select('id').where('kind', '!=', 'system').limit(1).execute();
  if (users.length > 0) return 'users';
  for (const { name } of shapes) {
    if (filled.has(name) || (left.has(name) && name !== 'secrets')) continue;
    if ((await tablesOf(db).selectFrom(name).select(sql<number>`1`.as('one')).limit(1).execute()).length > 0)
      return name;
  }
  return undefined;
}

export interface CopyProgress {
  table: string;
  rows: number;
  ofRows: number;
}

/**
 * Copies the tables into `to`, which is as new; its rows are replaced. Resolves to the number of rows of each table.
 * Throws where another number arrived.
 */
export async function copyTables(
  from: Kysely<Schema>,
  to: Transaction<Schema>,
  { shapes, onProgress }: { shapes: readonly TableShape[]; onProgress(progress: CopyProgress): void },
): Promise<Map<string, number>> {
  const [source, target] = [tablesOf(from), tablesOf(to)];
  const counts = new Map<string, number>();
  for (const { name } of shapes) counts.set(name, await countRows(source, name));
  const ofRows = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let rows = 0;
  for (const { name } of shapes.toReversed()) await target.deleteFrom(name).execute();
  for (const shape of shapes) {
    const { name } = shape;
    if (name === last) await target.deleteFrom(name).execute();
    for await (const page of pagesOf(source, shape)) {
      await target
        .insertInto(name)
        .values(page)
        .execute()
        .catch((error: unknown) => {
          throw refusedRow(name, error);
        });
      rows += page.length;
      onProgress({ table: name, rows, ofRows });
    }
  }
  for (const [name, count] of counts) {
    const arrived = await countRows(target, name);
    if (arrived !== count) throw new Error(`${arrived} of ${count} rows of ${name} arrived`);
  }
  return counts;
}

/** The error for a row that the source has and the target refuses, such as one that refers to nothing. */
function refusedRow(table: string, error: unknown): unknown {
  if (!isDatabaseError(error) || faultMessage(error) !== undefined) return error;
  const message = `A row of ${table} cannot be copied: ${(error as Error).message}. Nothing was copied; \`andromeda doctor\` on the old database may say more.`;
  return new DomainError('invalid_state', message, { cause: error });
}

/**
 * Resolves to the number of rows where the target has exactly what a copy of the source would put there; undefined where
 * anything differs.
 */
export async function compareTables(
  from: Kysely<Schema>,
  to: Kysely<Schema>,
  shapes: readonly TableShape[],
): Promise<number | undefined> {
  const [source, target] = [tablesOf(from), tablesOf(to)];
  let rows = 0;
  for (const shape of shapes) {
    const there = pagesOf(target, shape);
    for await (const page of pagesOf(source, shape)) {
      const { value: arrived } = await there.next();
      if (!isDeepStrictEqual(arrived, page)) return undefined;
      rows += page.length;
    }
    if (!(await there.next()).done) return undefined;
  }
  return rows;
}

async function* pagesOf(
  source: ReturnType<typeof tablesOf>,
  { name, columns, key }: TableShape,
): AsyncGenerator<AnyRow[]> {
  const keyRow = sql`(${sql.join(key.map((column) => sql.ref(column)))})`;
  let after: AnyRow | undefined;
  for (;;) {
    let query = source.selectFrom(name).select(columns).where(isCopied(name)).limit(pageSize);
    for (const column of key) query = query.orderBy(column);
    if (after) {
      const values = sql`(${sql.join(key.map((column) => after?.[column]))})`;
      query = query.where(sql<boolean>`${keyRow} > ${values}`);
    }
    const page = await query.execute();
    after = page.at(-1);
    if (page.length > 0) yield page;
    if (page.length < pageSize) return;
  }
}

async function countRows(db: ReturnType<typeof tablesOf>, name: string): Promise<number> {
  const query = db.selectFrom(name).select(({ fn }) => fn.countAll<number>().as('count'));
  return Number((await query.where(isCopied(name)).executeTakeFirstOrThrow()).count);
}

/** Counters of secrets are left out with the secrets. */
function isCopied(name: string) {
  return name === 'counters' ? sql<boolean>`name not like 'secret %'` : sql<boolean>`1 = 1`;
}

/** Throws `invalid_state` where SQLite's file is of another version than this one. */
export async function requireThisVersion(db: Kysely<Schema>, file: string): Promise<void> {
  const refuse = (is: string) => new DomainError('invalid_state', `${file} is of ${is}`);
  const state = schemaState(await listMigrations(db));
  if (state === 'ancient') throw refuseAncient(file);
  if (state === 'new' || state === 'older')
    throw refuse(
      'an older version of Andromeda. Start this version with it once, without `database`, stop it, and repeat this.',
    );
  if (state === 'newer') throw refuse('a newer version of Andromeda. Copy it with that version.');
}

/**
 * Throws `invalid_state` where the log (-wal) of a database that was moved away is still there: SQLite would apply it
 * to the new one.
 */
export function refuseLeftLog(file: string): void {
  const log = `${file}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new DomainError(
      'invalid_state',
      `There is no database ${file}, but its log ${log}, with what was written last. It belongs beside that database, wherever that was moved to, under the same name with -wal: mv ${log} ${file}.before-wal. Nothing was copied.`,
    );
  for (const one of [log, `${file}-shm`]) rmSync(one, { force: true });
}

/** Throws `invalid_state` where a server uses the database. */
export async function requireNoServers(read: Kysely<Schema>, id: string): Promise<void> {
  const servers = await listServers({ read, server: { id } });
  const live = servers.filter(({ isLive }) => isLive).map(({ name }) => name);
  if (live.length === 0) return;
  throw new DomainError(
    'invalid_state',
    `${live.join(', ')} ${live.length === 1 ? 'serves' : 'serve'} from this database. Stop every server first; one that was killed counts as gone after ${serverLifeMs / 1000} s.`,
  );
}

export function notEmpty(name: string, table: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${name} is not empty: there are rows in ${table}. Nothing was copied. Name another, empty database.`,
  );
}

export function copyError(error: unknown, { server, file }: { server: string; file: string }): unknown {
  if (error instanceof CommitInDoubt)
    return new DomainError(
      'service_unavailable',
      `${server} was lost at the end, and it is not known whether all was copied. Repeat this: it says whether it was.`,
      { cause: error },
    );
  const fault = faultMessage(error);
  if (fault === undefined) return error;
  const isServer = isPostgresError(error instanceof DomainError ? error.cause : error);
  const side = isServer ? server : file;
  return new DomainError('service_unavailable', `${side} cannot be used: ${fault}. Nothing was copied.`, {
    cause: error,
  });
}

/** Inspects a database while services use it: a whole file, in many short reads that delay no write, or a PostgreSQL's schema. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type Selectable, sql } from 'kysely';
import {
  type AuditCheckpoint,
  findBreak,
  isSignedCheckpoint,
  isSignedHead,
  type SignedHead,
} from '../../domain/audit/audit.ts';
import { clusterPaths } from '../../domain/clusters/lab-paths.ts';
import { DomainError } from '../../domain/error.ts';
import { withRedaction } from '../audit/audit.ts';
import {
  type DatabaseView,
  databaseFault,
  faultMessage,
  files,
  isDatabaseError,
  listSchemaObjects,
  openSqlite,
  type SchemaObjects,
  type ServerView,
  versionOf,
} from '../engine/engine.ts';
import type { Reader } from '../engine/index.ts';
import { listMigrations, migrate, refuseAncient, schemaState } from '../engine/migrate.ts';
import type { Schema } from '../generated/schema.ts';

interface SharedInspection {
  /** `new`: the first start fills it. `older`, `newer`: made by another version, so this one cannot check the rest. */
  state: 'new' | 'older' | 'newer' | 'known';
  /** Missing parts of the schema, as `table users`, `column users.name` … */
  missing: string[];
  foreign: string[];
  /** Whether `andromeda migrate` has copied the installation out of it. */
  isMovedAway: boolean;
}

/** Throws a `DomainError` where the database cannot be queried, or is of a version before the schema's first migration. */
export async function inspectShared({ name, reader, listObjects }: ServerView): Promise<SharedInspection> {
  const found = await listObjects();
  const expected = await expectedObjects();
  const foreign = [...found.tables.keys()].filter((name) => !expected.tables.has(name));
  const known = { foreign, missing: [] as string[], isMovedAway: false };
  if ([...expected.tables.keys()].every((name) => !found.tables.has(name))) return { ...known, state: 'new' };
  const state = schemaState(await listMigrations(reader));
  if (state === 'ancient') throw refuseAncient(name);
  // A migration of a newer version can have added anything.
  if (state === 'newer') return { ...known, foreign: [], state };
  if (state === 'older') return { ...known, state };
  const missing = missingOf(expected, found);
  return { state: 'known', missing, foreign, isMovedAway: (await versionOf(reader)) === undefined };
}

function missingOf(expected: SchemaObjects, found: SchemaObjects): string[] {
  const missing: string[] = [];
  for (const [table, columns] of expected.tables) {
    const there = found.tables.get(table);
    if (!there) missing.push(`table ${table}`);
    else for (const one of columns) if (!there.includes(one)) missing.push(`column ${table}.${one}`);
  }
  // Without its table, an index or trigger is missing as well.
  if (missing.length > 0) return missing;
  for (const name of expected.indexes) if (!found.indexes.has(name)) missing.push(`index ${name}`);
  for (const name of expected.triggers) if (!found.triggers.has(name)) missing.push(`trigger ${name}`);
  return missing;
}

/** The schema objects that the same migrations make in an empty file. */
async function expectedObjects(): Promise<SchemaObjects> {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-schema-'));
  const file = join(directory, 'andromeda.db');
  try {
    await using connections = openSqlite(file);
    return await connections.migrating(async (db) => {
      await migrate(db, file);
      return listSchemaObjects(db);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export interface Inspection extends Disposable {
  /** Why this version cannot inspect it, as a sentence; undefined where it can. */
  versionFault(): string | undefined;
  /** The faults of pages, indexes and references, table by table. */
  faults(): AsyncGenerator<string>;
  auditTrail(): Promise<AuditFindings>;
  clusterSides(): Promise<ClusterSideState[]>;
}

type QueryRunner = <Row>(query: string, ...values: unknown[]) => Promise<Row[]>;

export interface ClusterSideState {
  name: string;
  side: string;
  /** The time of its last report, RFC 3339; null: it has made none. */
  observedAt: string | null;
  /** The failure of the last attempt to observe or change it; null: none. */
  failure: string | null;
}

export interface AuditFindings {
  first: number;
  entries: number;
  lastAt: string | undefined;
  /** The last entry that a signed head covers; 0: none. */
  signed: number;
  accepted: number;
  keys: string[];
  fault: string | undefined;
}

const pageSize = 500;

/** Opens a database for inspection. Throws `invalid_state` with a sentence where it cannot be read. */
export function inspectDatabase(file: string): Inspection {
  let view: DatabaseView | undefined;
  try {
    view = files.view(file, { unchanged: false });
    view?.tables();
  } catch (error) {
    view?.[Symbol.dispose]();
    const message = `${file} cannot be read: ${faultMessage(error) ?? (error as Error).message}.`;
    throw new DomainError('invalid_state', message, { cause: error });
  }
  if (!view) throw new DomainError('invalid_state', `${file} cannot be opened.`);
  const database = view;
  const ask: QueryRunner = async (query, ...values) => database.rows(query, ...values);
  return {
    versionFault: () => versionFaultOf(database, file),
    faults: () => faultsOf(database),
    auditTrail: () => readTrail(ask),
    clusterSides: () => readSides(ask),
    [Symbol.dispose]: database[Symbol.dispose],
  };
}

function versionFaultOf(database: DatabaseView, file: string): string | undefined {
  const made = database.rows<{ name: string }>('select name from kysely_migration').map(({ name }) => name);
  const state = schemaState(made);
  if (state === 'ancient') return refuseAncient(file).message;
  return state === 'newer'
    ? `${file} was written by a newer version of Andromeda. Look with that one.`
    : undefined;
}

/** Why this version cannot use a database, as a sentence; undefined where it can, or where that cannot be read without changing something. */
export function findVersionFault(file: string, unchanged: boolean): string | undefined {
  const damaged = `${file} is damaged. Restore a backup (\`andromeda restore\`).`;
  return queryFile(file, (database) => versionFaultOf(database, file), { unchanged, damaged });
}

export const inspectTrail = (db: Reader): Promise<AuditFindings> => readTrail(askerOf(db));
export const inspectSides = (db: Reader): Promise<ClusterSideState[]> => readSides(askerOf(db));

function askerOf(db: Reader): QueryRunner {
  return async <Row>(query: string, ...values: unknown[]) => {
    const [first = '', ...parts] = query.split('?');
    const whole = parts.reduce((all, part, at) => sql`${all}${values[at]}${sql.raw(part)}`, sql.raw(first));
    return (await whole.execute(db)).rows as Row[];
  };
}

function readSides(ask: QueryRunner): Promise<ClusterSideState[]> {
  return ask<ClusterSideState>(
    `select c.name, t.side, o.observed_at as "observedAt", coalesce(s.look_failure, s.apply_failure) as failure
       from clusters c
       join (select cluster_id, side from observations union select cluster_id, side from cluster_sides) t
         on t.cluster_id = c.id
       left join observations o on o.cluster_id = c.id and o.side = t.side
       left join cluster_sides s on s.cluster_id = c.id and s.side = t.side
      where c.state in ('provisioning', 'active')
      order by c.name, t.side limit 1000`,
  );
}

async function* faultsOf(database: DatabaseView): AsyncGenerator<string> {
  for (const table of database.tables()) {
    for (const fault of database.faultsOf(table)) yield `${table}: ${fault}`;
    await nextTick();
  }
}

/** Reads the trail; starts again where retention moved its beginning meanwhile. */
async function readTrail(ask: QueryRunner): Promise<AuditFindings> {
  const checkpoint = async () =>
    (await ask<AuditCheckpoint>('select * from audit_checkpoints order by seq desc limit 1')).at(0);
  for (;;) {
    const before = await checkpoint();
    const findings = await readFrom(ask, before);
    if (findings.fault === undefined || (await checkpoint())?.seq === before?.seq) return findings;
  }
}

async function readFrom(ask: QueryRunner, checkpoint: AuditCheckpoint | undefined): Promise<AuditFindings> {
  const heads = await ask<SignedHead>('select * from audit_heads order by seq');
  const hashes = new Map(heads.map(({ seq, hash }) => [seq, hash]));
  const keys = new Set([...heads, ...(checkpoint ? [checkpoint] : [])].map(({ key }) => key));
  const signed = heads.at(-1)?.seq ?? 0;
  const [newest] = await ask<{ at: string }>('select at from audit_entries order by seq desc limit 1');
  let last = { seq: checkpoint?.seq ?? 0, hash: checkpoint?.hash ?? '' };
  const first = last.seq + 1;
  let accepted = 0;
  const found = (fault?: string) => ({
    first,
    entries: last.seq,
    lastAt: newest?.at,
    signed,
    accepted,
    keys: [...keys],
    fault,
  });
  if (checkpoint && !isSignedCheckpoint(checkpoint))
    return found(`The signature of the checkpoint of entry ${checkpoint.seq} is wrong.`);
  const forged = heads.find((head) => !isSignedHead(head));
  if (forged) return found(`The signature of the head of entry ${forged.seq} is wrong.`);
  for (;;) {
    const rows = await ask<Selectable<Schema['audit_entries']>>(
      'select * from audit_entries where seq > ? order by seq limit ?',
      last.seq,
      pageSize,
    );
    const page = rows.map((row) => withRedaction(row));
    for (const { redaction } of page) if (redaction) keys.add(redaction.key);
    const broken = findBreak(last, page);
    if (broken) return found(`Entry ${broken.seq} does not fit: it was changed, or what stood before it.`);
    const other = page.find(({ seq, hash }) => hashes.has(seq) && hashes.get(seq) !== hash);
    if (other) return found(`The trail was rewritten: entry ${other.seq} is not the one that was signed.`);
    accepted += page.filter(({ redaction }) => redaction?.accepted).length;
    last = page.at(-1) ?? last;
    if (page.length < pageSize) break;
    await nextTick();
  }
  if (signed <= last.seq) return found();
  return found(`The trail was cut: it ends at entry ${last.seq}, and entry ${signed} was signed.`);
}

/** The files that clusters in a database name; undefined where that cannot be read. */
export function listNamedFiles(
  file: string,
  { unchanged }: { unchanged: boolean },
): { cluster: string; setting: string; path: string }[] | undefined {
  const read = (database: DatabaseView) =>
    database
      .rows<{ name: string; driver: string }>('select name, driver from clusters')
      .flatMap(({ name, driver }) =>
        clusterPaths(JSON.parse(driver)).map((one) => ({ cluster: name, ...one })),
      );
  return queryFile(file, read, { unchanged });
}

/** The slugs of the organizations in a database; undefined where that cannot be read without changing something. */
export function listSlugsIn(file: string): string[] | undefined {
  return queryFile(file, (database) =>
    database.rows<{ slug: string }>('select slug from organizations').map(({ slug }) => slug),
  );
}

/**
 * Whether a database was filled without a lab file, so that none is read any more; undefined where that cannot be read
 * without changing something.
 */
export function isFilledOtherwise(file: string): boolean | undefined {
  return queryFile(file, (database) => {
    const any = (from: string) => database.rows(`select 1 from ${from} limit 1`).length > 0;
    const isFilled = any("users where kind = 'person'") || any('organizations');
    return (
      isFilled && !any("audit_entries where operation = 'createInstallation'") && !any('audit_checkpoints')
    );
  });
}

function queryFile<T>(
  file: string,
  body: (database: DatabaseView) => T,
  { unchanged = true, damaged }: { unchanged?: boolean; damaged?: T } = {},
): T | undefined {
  try {
    using database = files.view(file, { unchanged });
    return database && body(database);
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    return databaseFault(error) === 'damaged' ? damaged : undefined;
  }
}

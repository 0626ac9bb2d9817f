/**
 * Checks whether a data directory speaks against starting with a new database: no operator wants a service without people in
 * place of one that had some.
 */
import { randomInt } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { DomainError } from '../../domain/error.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { files, type TimelineNote } from '../engine/engine.ts';
import type { Schema } from '../generated/schema.ts';

/** Whether there is nothing in the database but what every new one has. */
export async function isEmpty(db: Kysely<Schema>): Promise<boolean> {
  const person = await db.selectFrom('users').select('id').where('kind', '=', 'person').executeTakeFirst();
  const organization = await db.selectFrom('organizations').select('id').executeTakeFirst();
  return person === undefined && organization === undefined;
}

/**
 * Throws `invalid_state` where a data directory has keys and no database, or an empty one. With a new database, the service
 * would have no people, under the host key that people trust.
 */
export function refuseLost(dataDir: string, file: string): void {
  if (sizeOf(file) > 0) return;
  if (!hasKeys(dataDir)) return;
  const keys = join(dataDir, 'keys');
  const state = existsSync(file) ? 'is empty' : 'is missing';
  throw new DomainError(
    'invalid_state',
    `The database ${file} ${state}, and there are keys beside it, so there was one. Bring it back, or restore a backup (\`andromeda restore\`). To begin anew on purpose, move ${keys} away first.`,
  );
}

function hasKeys(dataDir: string): boolean {
  const keys = join(dataDir, 'keys');
  return existsSync(keys) && readdirSync(keys).length > 0;
}

/** Throws `invalid_state` where a PostgreSQL is not the one to serve from a data directory. `db` left out: it has no tables yet. */
export async function refuseUnfit(
  db: Kysely<Schema> | undefined,
  name: string,
  dataDir: string,
): Promise<void> {
  const file = join(dataDir, 'andromeda.db');
  if (sizeOf(file) > 0) {
    if (!db || (await isEmpty(db))) throw notCopied(name, file);
    await refuseForeignFile(db, name, dataDir);
  }
  await refuseOther(db, name, dataDir);
}

/**
 * The PostgreSQL is as new, and the data directory has the database of before. Keys say nothing: with a PostgreSQL, a data
 * directory has some that an operator put there, and a list of those in use.
 */
function notCopied(name: string, file: string): DomainError {
  const both = existsSync(`${file}-wal`) ? `${file} and ${file}-wal` : file;
  return new DomainError(
    'invalid_state',
    `The database ${name} is empty, and ${file} has the installation of before. Copy it: andromeda migrate --from sqlite --to postgres. To begin anew on purpose, move ${both} away first.`,
  );
}

/**
 * Throws `invalid_state` where a PostgreSQL has an installation, and the data directory has SQLite's file of another one: its host key,
 * its issuer's keys and the audit trail's would win over those in the database.
 */
async function refuseForeignFile(db: Kysely<Schema>, name: string, dataDir: string): Promise<void> {
  const file = join(dataDir, 'andromeda.db');
  const noted = readId(fileOf(dataDir));
  if (noted !== undefined && noted === (await findId(db))) return;
  const ids = idsIn(file);
  // A start without people made keys all the same.
  const isUnused = ids?.length === 0 && !hasKeys(dataDir);
  if (isUnused || (ids && (await isAnyIn(db, ids)))) return;
  throw new DomainError(
    'invalid_state',
    `The database ${name} has an installation, and ${file} has another one, with keys of its own in ${dataDir}. Is \`dataDir\` right, and \`database\`? To have this server join the others of that database, move ${dataDir} away first, and start with an empty one.`,
  );
}

/** Some people and organizations of SQLite's file, which have the same IDs wherever they are copied to; undefined: it cannot be read. */
function idsIn(file: string): string[] | undefined {
  const ids = (from: string) => `select * from (select id from ${from} order by id limit 50)`;
  try {
    using view = files.view(file, { unchanged: false });
    return view
      ?.rows<{ id: string }>(`${ids("users where kind = 'person'")} union all ${ids('organizations')}`)
      .map(({ id }) => id);
  } catch {
    return undefined;
  }
}

async function isAnyIn(db: Kysely<Schema>, ids: readonly string[]): Promise<boolean> {
  const people = db.selectFrom('users').select('id').where('id', 'in', ids);
  const organizations = db.selectFrom('organizations').select('id').where('id', 'in', ids);
  return (await people.union(organizations).limit(1).executeTakeFirst()) !== undefined;
}

/** Its row in the table of counters, which goes wherever the installation is copied to. */
const idRow = 'installation';
/** SQLite, PostgreSQL and JavaScript have every such number exactly. */
const idRange = 2 ** 47;

/**
 * Throws `invalid_state` where a PostgreSQL is empty, or has another installation than the one that was served from the data
 * directory: a wrong database name would start a service without people.
 */
async function refuseOther(db: Kysely<Schema> | undefined, name: string, dataDir: string): Promise<void> {
  const noted = readId(fileOf(dataDir));
  if (noted === undefined) return;
  const found = db && (await findId(db));
  if (found === noted) return;
  // One that was copied there has no ID before it is first served.
  if (db && found === undefined && !(await isEmpty(db))) return;
  const state =
    found === undefined
      ? `is empty, and the one that was served from ${dataDir} had an installation`
      : `has another installation than the one that was served from ${dataDir}`;
  throw new DomainError(
    'invalid_state',
    `The database ${name} ${state}. Is its name right? Correct \`database\`, or restore a dump. To serve from this one on purpose, move ${fileOf(dataDir)} away first.`,
  );
}

/** Gives a PostgreSQL's installation its ID, if it has none, and notes in the data directory that this is what it serves. */
export async function noteInstallation(db: Kysely<Schema>, dataDir: string): Promise<void> {
  const file = fileOf(dataDir);
  const noted = readId(file);
  let id = await findId(db);
  if (id === undefined) {
    id = noted ?? randomInt(1, idRange);
    await db.insertInto('counters').values({ name: idRow, value: id }).execute();
  }
  if (id !== noted) writeWhole(file, `${id}\n`);
}

async function findId(db: Kysely<Schema>): Promise<number | undefined> {
  const row = await db.selectFrom('counters').select('value').where('name', '=', idRow).executeTakeFirst();
  return row && Number(row.value);
}

function readId(file: string): number | undefined {
  if (!existsSync(file)) return undefined;
  const id = Number(readFileSync(file, 'utf8'));
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'installation-id');
}

/**
 * The newest timeline of PostgreSQL that was served from a data directory. `isHeld`: it is this process's, which may note a newer one.
 */
export function timelineNote(dataDir: string, isHeld: boolean): TimelineNote {
  const file = join(dataDir, 'postgres-timeline');
  const [system = '', number] = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : [];
  const noted = system === '' ? undefined : { system, number: Number(number) };
  if (existsSync(file) && !(noted && Number.isSafeInteger(noted.number)))
    throw new DomainError(
      'invalid_state',
      `${file} does not have the timeline of PostgreSQL that was served from. See that the primary is the one that took over last, and move that file away.`,
    );
  return {
    file,
    noted,
    note: (newest) => isHeld && writeWhole(file, `${newest.system} ${newest.number}\n`),
  };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Checks whether a data directory speaks against starting with a new database: no operator wants a service without people in
 * place of one that had some.
 */
import { randomInt } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { DomainError } from '../../domain/error.ts';
import {
  type KeyKind,
  keyKinds,
  readKeySet,
  secretTitle,
  serviceSecrets,
} from '../../domain/key-rotation.ts';
import type { SecretsKeys } from '../../lib/secrets-key.ts';
import { parseSshKey } from '../../lib/ssh/public-key.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { files, type TimelineNote } from '../engine/engine.ts';
import type { Schema } from '../generated/schema.ts';
import { readSecrets } from '../servers/secrets.ts';
import { readKeyFiles } from './key-files.ts';

/** Whether a database has no people and no organizations, as every new one. */
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
  const keys = join(dataDir, 'keys');
  if (!existsSync(keys) || readdirSync(keys).length === 0) return;
  const state = existsSync(file) ? 'is empty' : 'is missing';
  throw new DomainError(
    'invalid_state',
    `The database ${file} ${state}, and there are keys beside it, so there was one. Bring it back, or restore a backup (\`andromeda restore\`). To begin anew on purpose, move ${keys} away first.`,
  );
}

/** Throws `invalid_state` where a PostgreSQL is not the one to serve from a data directory. `db` undefined: it has no tables yet. */
export async function refuseUnfit(
  db: Kysely<Schema> | undefined,
  name: string,
  dataDir: string,
  keys: SecretsKeys | undefined,
): Promise<void> {
  const file = join(dataDir, 'andromeda.db');
  const isNew = !db || (await isEmpty(db));
  if (isNew && sizeOf(file) > 0) throw notCopied(name, file);
  if (!isNew) await refuseForeign(db, name, dataDir, keys);
  await refuseOther(db, name, dataDir);
}

/**
 * The error for a new PostgreSQL with the database of before in the data directory. Keys prove nothing: with a
 * PostgreSQL, a data directory has some that an operator put there, and a list of those in use.
 */
function notCopied(name: string, file: string): DomainError {
  const both = existsSync(`${file}-wal`) ? `${file} and ${file}-wal` : file;
  return new DomainError(
    'invalid_state',
    `The database ${name} has no people yet, and ${file} has the installation of before. Copy it: andromeda migrate --from sqlite --to postgres. To begin anew on purpose, move ${both} away first.`,
  );
}

/**
 * Throws `invalid_state` where a PostgreSQL has an installation, and the data directory, which did not serve that yet, has the keys or
 * the SQLite file of another one: it was started alone, or one of the two settings is wrong.
 */
async function refuseForeign(
  db: Kysely<Schema>,
  name: string,
  dataDir: string,
  keys: SecretsKeys | undefined,
): Promise<void> {
  const noted = readId(fileOf(dataDir));
  if (noted !== undefined && noted === (await findId(db))) return;
  const shared = keys ? await readSecrets(db, keys) : new Map<string, string>();
  const other = keyKinds.find((kind) => hasOtherKey(dataDir, kind, shared.get(serviceSecrets[kind].name)));
  if (other === undefined && (await isOfSame(db, join(dataDir, 'andromeda.db')))) return;
  const text = shared.get(serviceSecrets.host.name);
  const sets = [readKeyFiles(dataDir, 'host'), text === undefined ? undefined : readKeySet(text, name)];
  const [own, theirs] = sets.map((set) => set && parseSshKey(set.key)?.fingerprint);
  const keysText = own && theirs ? `: its host key is ${own}, and in the database ${theirs}` : '';
  throw new DomainError(
    'invalid_state',
    `The database ${name} has an installation, and ${dataDir} is of another one, or was started alone${keysText}. Is \`dataDir\` right, and \`database\`? To have this server join the others of that database, move ${dataDir} away first, and start with an empty one.`,
  );
}

function hasOtherKey(dataDir: string, kind: KeyKind, shared: string | undefined): boolean {
  const own = shared === undefined ? undefined : readKeyFiles(dataDir, kind);
  if (!own || shared === undefined) return false;
  const { key, next } = readKeySet(shared, secretTitle(serviceSecrets[kind].name));
  return ![key, next?.key].includes(own.key);
}

/** Whether a database has some of the people or organizations of SQLite's file (copies keep their IDs), or the file has none. */
async function isOfSame(db: Kysely<Schema>, file: string): Promise<boolean> {
  if (sizeOf(file) === 0) return true;
  const some = (from: string) => `select * from (select id from ${from} order by id limit 50)`;
  let ids: string[];
  try {
    using view = files.view(file, { unchanged: false });
    const rows = view?.rows<{ id: string }>(
      `${some("users where kind = 'person'")} union all ${some('organizations')}`,
    );
    if (!rows) return false;
    ids = rows.map(({ id }) => id);
  } catch {
    return false;
  }
  const people = db.selectFrom('users').select('id').where('id', 'in', ids);
  const organizations = db.selectFrom('organizations').select('id').where('id', 'in', ids);
  return ids.length === 0 || (await people.union(organizations).limit(1).executeTakeFirst()) !== undefined;
}

/** The row with the installation's ID in the table of counters, which is copied with the installation. */
const idRow = 'installation';
/** SQLite, PostgreSQL and JavaScript represent every such number exactly. */
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
  // An installation that was copied there has no ID before it is first served.
  if (db && found === undefined && !(await isEmpty(db))) return;
  const state =
    found === undefined
      ? `has no people yet, and the one that was served from ${dataDir} had an installation`
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

/** The newest timeline of PostgreSQL that a data directory has noted. `isHeld`: this process may note a newer one. */
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

/**
 * The process that inspects the database, or replaces it by a copy, for `service upgrade` and `service rollback`:
 * `andromeda schema-process`, an internal command that they start. They run as root, but the database belongs to the
 * service's account: so this switches to that account first.
 */
import { spawnSync } from 'node:child_process';
import { DomainError } from '../../../domain/error.ts';
import { programFile } from '../../../lib/packaging.ts';
import {
  copyOf,
  findSchema,
  hasCopy,
  listWrittenSince,
  requireSpaceForCopies,
  type WrittenSince,
} from '../../../store/data-dir/before-upgrade.ts';
import { timelineNote } from '../../../store/data-dir/first-start.ts';
import { restoreBackup } from '../../../store/data-dir/restore.ts';
import { viewPostgres } from '../../../store/engine/engine.ts';
import { findSupport, listMigrations } from '../../../store/engine/migrate.ts';
import { type Config, readConfig } from '../../config/index.ts';
import { becomeOwnerOf } from './account.ts';

export interface SchemaState {
  schema?: string | undefined;
  /** Of a shared database: the last migration of the oldest program that works with it. */
  oldestServed?: string | undefined;
  isShared: boolean;
  /** Changes since the usable copy of the database with the named schema; undefined: it has that schema, or there is no copy. */
  written?: WrittenSince | undefined;
}

interface SchemaAnswers {
  inspect: SchemaState;
  restore: object;
}

/** Starts such a process of this program, to inspect the database or restore the copy of a schema. Throws its refusal. */
export function askSchema<Task extends keyof SchemaAnswers>(
  config: string,
  task: Task,
  schema = '',
): SchemaAnswers[Task] {
  const { status, stdout, stderr, error } = spawnSync(
    programFile,
    ['schema-process', config, task, schema],
    // The current directory may be closed to that account.
    { encoding: 'utf8', cwd: '/' },
  );
  if (status !== 0) throw error ?? new Error(`the process that looks at the database ended: ${stderr}`);
  const { answer, refusal } = JSON.parse(stdout) as { answer?: SchemaAnswers[Task]; refusal?: string };
  if (answer === undefined) throw new DomainError('invalid_state', refusal ?? '');
  return answer;
}

export async function runSchemaProcess([file = '', task, schema = '']: string[]): Promise<void> {
  try {
    const config = readConfig(file);
    becomeOwnerOf(config.dataDir);
    process.stdout.write(JSON.stringify({ answer: await perform(config, task, schema) }));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    process.stdout.write(JSON.stringify({ refusal: error.message }));
  }
}

async function perform(config: Config, task: string | undefined, schema: string): Promise<object> {
  const { dataDir, database } = config;
  if (task === 'restore') return restoreBackup(copyOf(dataDir, schema), dataDir, new Date().toISOString());
  if (database !== undefined) return inspectSharedSchema(database, dataDir);
  const present = findSchema(dataDir);
  const needsCopy = schema !== '' && schema !== present && hasCopy(dataDir, schema);
  return { schema: present, isShared: false, written: needsCopy ? inspectCopy(dataDir, schema) : undefined };
}

/** Reports faults of the copy, or too little space for it, before the service is stopped. */
function inspectCopy(dataDir: string, schema: string): WrittenSince {
  try {
    requireSpaceForCopies(dataDir, 1);
    return listWrittenSince(dataDir, schema);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    throw new DomainError(error.code, `${error.message} Nothing was changed.`, { cause: error });
  }
}

async function inspectSharedSchema(database: string, dataDir: string): Promise<SchemaState> {
  const view = await viewPostgres(database, timelineNote(dataDir, false));
  const state = { isShared: true };
  try {
    const { tables } = await view.listObjects();
    if (!tables.has('kysely_migration') || !tables.has('schema_support')) return state;
    const schema = (await listMigrations(view.reader)).at(-1);
    return { ...state, schema, oldestServed: await findSupport(view.reader) };
  } finally {
    await view.close();
  }
}

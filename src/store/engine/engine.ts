/** The database engines: the only way to `sqlite/` and `postgres/`, and the only file that knows what is special about each. */
import { DomainError } from '../../domain/error.ts';
import type { Connections, DatabaseFault } from './dialect.ts';
import {
  CommitInDoubt,
  isHeldUp,
  isOfAll,
  isOfBegin,
  isPostgresError,
  postgresFault,
} from './postgres/fault.ts';
import type { PostgresOptions } from './postgres/index.ts';
import type { TimelineNote } from './postgres/primary.ts';
import type { ServerView } from './postgres/view.ts';
import { isDatabaseError as isSqliteError, databaseFault as sqliteFault } from './sqlite/fault.ts';
import { copy, isDatabase, isTooLarge, lock, openFile, version, view } from './sqlite/files.ts';

export type {
  Connections,
  CopyOptions,
  DatabaseFault,
  SchemaObjects,
} from './dialect.ts';
export {
  countChanges,
  databaseTime,
  dataVersion,
  endWrites,
  engineNameOf,
  versionOf,
} from './queries.ts';
export type { DatabaseFile, DatabaseView } from './sqlite/files.ts';
export { listSchemaObjects, listTableShapes, type TableShape } from './sqlite/files.ts';
export { openSqlite, type SqliteConnections } from './sqlite/index.ts';
export type { ServerView, TimelineNote };
export { CommitInDoubt, isHeldUp, isOfAll, isOfBegin, isPostgresError };

/** SQLite's databases as files, with locks on files and backups. */
export const files = { openFile, isDatabase, isTooLarge, view, copy, lock, version };

/** Opens the PostgreSQL of a URL; its modules are loaded only then. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Connections> {
  const postgres = await import('./postgres/index.ts');
  return postgres.openPostgres(url, options);
}

/** Opens the PostgreSQL of a URL for inspection; its modules are loaded only then. */
export async function viewPostgres(url: string, timeline?: TimelineNote): Promise<ServerView> {
  const { viewPostgres: view } = await import('./postgres/view.ts');
  return view(url, timeline);
}

export function isDatabaseError(error: unknown): boolean {
  return isSqliteError(error) || isPostgresError(error);
}

/** The fault of the database or its disk that an error reports; undefined for any other error. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  return sqliteFault(error) ?? postgresFault(error);
}

const messages: Record<DatabaseFault, string> = {
  away: 'it cannot be reached',
  crowded: 'it takes no more connections (max_connections)',
  former:
    'only a former primary answers, which lacks what was written since another host took over. Start that host, and stop the former primary',
  held: 'another program holds it',
  locked: 'another connection of it holds a lock for too long',
  slow: 'it takes too long to answer, or a table of it is locked',
  standby: 'it takes no writes: it is a standby, or was set to be read only',
  full: 'the disk is full',
  'read-only': 'the disk or the file is read-only',
  moved:
    'its files were moved, removed or replaced; stop the service, and bring them back or restore a backup (`andromeda restore`)',
  disk: 'the disk does not answer as it should',
  damaged: 'it is damaged, and a backup has to be restored (`andromeda restore`)',
  denied: 'its user has no right to its tables, and has to own them',
};

/** The database fault that an error reports, or that caused a refusal. */
export function faultBehind(error: unknown): DatabaseFault | undefined {
  return error instanceof DomainError ? faultBehind(error.cause) : databaseFault(error);
}

/** The database fault behind an error, as a clause; undefined where an error is about something else. */
export function faultMessage(error: unknown): string | undefined {
  const fault = faultBehind(error);
  return fault && messages[fault];
}

/** A failed write as callers see it: `service_unavailable` where the database is at fault, else the error itself. */
export function writeError(error: unknown): unknown {
  const fault = databaseFault(error);
  if (fault === undefined) return error;
  const reason = fault === 'former' ? `: ${messages.former}` : '';
  const message = `The database takes no writes at the moment${reason}. Nothing was changed; try again.`;
  return new DomainError('service_unavailable', message, { cause: error });
}

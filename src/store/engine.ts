/** The engines that databases are opened with: the only way to `dialects/`, which alone knows what is special about each. */
import type { Connections, DatabaseFault, FileDialect } from './dialects/dialect.ts';
import type { PostgresOptions } from './dialects/postgres.ts';
import { CommitInDoubt, isOfAll, isPostgresError, postgresFault } from './dialects/postgres-fault.ts';
import { isHeldUp } from './dialects/postgres-held-up.ts';
import type { ServerView } from './dialects/postgres-view.ts';
import { sqliteFiles } from './dialects/sqlite.ts';
import { isDatabaseError as isSqliteError, databaseFault as sqliteFault } from './dialects/sqlite-fault.ts';

export type {
  Connections,
  CopyOptions,
  DatabaseFault,
  DatabaseFile,
  DatabaseView,
  Obstacle,
  Others,
  SchemaObjects,
} from './dialects/dialect.ts';
export { endWrites, versionOf } from './dialects/postgres-fence.ts';
export { countChanges, databaseTime, dataVersion, engineNameOf, execute } from './dialects/queries.ts';
export { openSqlite, type SqliteConnections } from './dialects/sqlite.ts';
export { listSchemaObjects, listTableShapes, type TableShape } from './dialects/sqlite-tables.ts';
export type { ServerView };
export { CommitInDoubt, isHeldUp, isOfAll, isPostgresError };

/** Databases that are files, locks on files and backups among them. */
export const files: FileDialect = sqliteFiles;

/** Opens the PostgreSQL of a URL; what it takes is loaded only then. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Connections> {
  const postgres = await import('./dialects/postgres.ts');
  return postgres.openPostgres(url, options);
}

/** Opens the PostgreSQL of a URL to look at; what it takes is loaded only then. */
export async function viewPostgres(url: string): Promise<ServerView> {
  const { viewPostgres: view } = await import('./dialects/postgres-view.ts');
  return view(url);
}

/** Whether an error is an engine's own. */
export function isDatabaseError(error: unknown): boolean {
  return isSqliteError(error) || isPostgresError(error);
}

/** What an error says of the database or its disk; undefined for any other error. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  return sqliteFault(error) ?? postgresFault(error);
}

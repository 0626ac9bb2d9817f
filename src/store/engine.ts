/** The engines that databases are opened with: the only way to `dialects/`, which alone knows what is special about each. */
import type { FileDialect } from './dialects/dialect.ts';
import { sqliteFiles } from './dialects/sqlite.ts';

export type {
  Connections,
  CopyOptions,
  DatabaseFault,
  DatabaseFile,
  DatabaseView,
  Others,
} from './dialects/dialect.ts';
export { countChanges, databaseTime, dataVersion, engineNameOf, execute } from './dialects/queries.ts';
export { openSqlite } from './dialects/sqlite.ts';
export { databaseFault, isDatabaseError } from './dialects/sqlite-fault.ts';

/** Databases that are files, locks on files and backups among them. */
export const files: FileDialect = sqliteFiles;

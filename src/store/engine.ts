/** The engine that databases are opened with: the only way to `dialects/`, which alone knows what is special about it. */
import type { Dialect } from './dialects/dialect.ts';
import { sqlite } from './dialects/sqlite.ts';

export type {
  Connections,
  CopyOptions,
  DatabaseFault,
  DatabaseFile,
  DatabaseView,
} from './dialects/dialect.ts';

export const engine: Dialect = sqlite;

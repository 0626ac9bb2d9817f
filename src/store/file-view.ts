/** A view of a database file from outside of the service, without a change to the file or to what lies beside it. */
import { clusterPaths } from '../domain/lab-paths.ts';
import { type DatabaseView, files, isDatabaseError } from './engine.ts';

/** Whether a file is one that the store could open. */
export function isDatabaseFile(file: string): boolean {
  return files.isDatabase(file);
}

/** The files that clusters in a database name; undefined where that cannot be read without changing something. */
export function listNamedFiles(
  file: string,
): { cluster: string; setting: string; path: string }[] | undefined {
  return queryFile(file, (database) =>
    database
      .rows<{ name: string; driver: string }>('select name, driver from clusters')
      .flatMap(({ name, driver }) =>
        clusterPaths(JSON.parse(driver)).map((one) => ({ cluster: name, ...one })),
      ),
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

function queryFile<T>(file: string, body: (database: DatabaseView) => T): T | undefined {
  let database: DatabaseView | undefined;
  try {
    database = files.view(file, { unchanged: true });
    return database && body(database);
  } catch (error) {
    if (!isDatabaseError(error)) throw error;
    return undefined;
  } finally {
    database?.close();
  }
}

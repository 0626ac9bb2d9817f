/** The messages for faults of the database. */
import { DomainError } from '../domain/error.ts';
import { type DatabaseFault, databaseFault } from './engine.ts';

const messages: Record<DatabaseFault, string> = {
  away: 'it cannot be reached',
  crowded: 'it takes no more connections (max_connections)',
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

/** What is wrong with the database, as a clause; undefined where an error is about something else. */
export function faultMessage(error: unknown): string | undefined {
  if (error instanceof DomainError) return faultMessage(error.cause);
  const fault = databaseFault(error);
  return fault && messages[fault];
}

/** A failed write as callers see it: `service_unavailable` where the database is at fault, else the error itself. */
export function writeError(error: unknown): unknown {
  if (databaseFault(error) === undefined) return error;
  const message = 'The database takes no writes at the moment. Nothing was changed; try again.';
  return new DomainError('service_unavailable', message, { cause: error });
}

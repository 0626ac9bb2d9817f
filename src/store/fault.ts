/** What a fault of the database is called where people read it. */
import { DomainError } from '../domain/error.ts';
import { type DatabaseFault, engine } from './engine.ts';

const messages: Record<DatabaseFault, string> = {
  held: 'another program holds it',
  full: 'the disk is full',
  'read-only': 'the disk or the file is read-only',
  disk: 'the disk does not answer as it should',
  damaged: 'it is damaged, and a backup has to be restored (`andromeda restore`)',
};

/** In words, what is wrong with the database; undefined where an error is about something else. */
export function faultWords(error: unknown): string | undefined {
  if (error instanceof DomainError) return faultWords(error.cause);
  const fault = engine.databaseFault(error);
  return fault && messages[fault];
}

/** A failed write as callers see it: `service_unavailable` where the database is at fault, else the error itself. */
export function writeError(error: unknown): unknown {
  if (engine.databaseFault(error) === undefined) return error;
  const message = 'The database takes no writes at the moment. Nothing was changed; try again.';
  return new DomainError('service_unavailable', message, { cause: error });
}

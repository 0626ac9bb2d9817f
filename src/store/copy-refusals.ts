/** What keeps an installation from being copied to another database, as sentences. */
import { rmSync, statSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { DomainError } from '../domain/error.ts';
import { serverLifeMs } from '../domain/server.ts';
import { CommitInDoubt, isPostgresError } from './engine.ts';
import { faultMessage } from './fault.ts';
import { isMigrated, listSteps } from './migrate.ts';
import { migrations } from './migrations/index.ts';
import type { Schema } from './schema.ts';
import { listServers } from './servers.ts';

/** Throws `invalid_state` where SQLite's file has other steps than this version. */
export async function requireThisVersion(db: Kysely<Schema>, file: string): Promise<void> {
  const refuse = (is: string) => new DomainError('invalid_state', `${file} is of ${is}`);
  if (!(await isMigrated(db)))
    throw refuse(
      'an older version of Andromeda. Start this version with it once, without `database`, stop it, and repeat this.',
    );
  if ((await listSteps(db)).some((name) => !(name in migrations)))
    throw refuse('a newer version of Andromeda. Copy it with that version.');
}

/**
 * Throws `invalid_state` where there is the log of a database that was moved away without it: SQLite would take what it holds for a
 * part of the new one.
 */
export function refuseLeftLog(file: string): void {
  const log = `${file}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new DomainError(
      'invalid_state',
      `There is no database ${file}, but its log ${log}, with what was written last. It belongs beside that database, wherever that was moved to, under the same name with -wal: mv ${log} ${file}.before-wal. Nothing was copied.`,
    );
  for (const one of [log, `${file}-shm`]) rmSync(one, { force: true });
}

/** Throws `invalid_state` where a server uses the database. */
export async function requireNoServers(read: Kysely<Schema>, id: string): Promise<void> {
  const servers = await listServers({ read, server: { id, isAlone: false } });
  const live = servers.filter(({ isLive }) => isLive).map(({ name }) => name);
  if (live.length === 0) return;
  throw new DomainError(
    'invalid_state',
    `${live.join(', ')} ${live.length === 1 ? 'serves' : 'serve'} from this database. Stop every server first; one that was killed counts as gone after ${serverLifeMs / 1000} s.`,
  );
}

export function notEmpty(name: string, table: string): DomainError {
  return new DomainError(
    'invalid_state',
    `${name} is not empty: there are rows in ${table}. Nothing was copied. Name another, empty database.`,
  );
}

/** An error as a sentence where a database is at fault. */
export function copyError(error: unknown, { server, file }: { server: string; file: string }): unknown {
  if (error instanceof CommitInDoubt)
    return new DomainError(
      'service_unavailable',
      `${server} was lost at the end, and it is not known whether all was copied. Repeat this: it says whether it was.`,
      { cause: error },
    );
  const fault = faultMessage(error);
  if (fault === undefined) return error;
  const isServer = isPostgresError(error instanceof DomainError ? error.cause : error);
  const side = isServer ? server : file;
  return new DomainError('service_unavailable', `${side} cannot be used: ${fault}. Nothing was copied.`, {
    cause: error,
  });
}

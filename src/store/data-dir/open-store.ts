/** Opens the database of a data directory as a store. */
import type { AccessPolicy } from '../../domain/access/lapse.ts';
import { newId } from '../../domain/id.ts';
import { type Clock, createClock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { createStore, type Store } from '../engine/index.ts';
import type { SchemaSteps } from '../engine/migrate.ts';
import { openDataDir } from './open-data-dir.ts';

export interface StoreOptions {
  /** Where a server of this version holds the directory, works next to it (for a short while, on the host). */
  beside?: boolean;
  /** The schema of a PostgreSQL is to be there already, and is not changed; others may be serving from it. */
  unchanged?: boolean;
  /** The one of its writes. */
  clock?: Clock;
  /** When access lapses; left out: never. */
  access?: AccessPolicy;
  /** `postgres://…`: the database that it shares with other servers; left out: SQLite's file in the data directory. */
  database?: string | undefined;
  /** Of a server: where that database is away, it waits, and says so here. Left out: that is refused. */
  log?: Logger | undefined;
  /** Resolves when it is to wait no longer. */
  stopping?: Promise<unknown> | undefined;
  /** The steps of another version, in the place of this one's; for tests of upgrades. */
  schema?: SchemaSteps | undefined;
}

/**
 * Opens the database of a data directory, making both if they are missing, and brings it to this version.
 * Holds the directory until closed. Throws `invalid_state` when another process holds it, or the directory was written by a newer version.
 */
export async function openStore(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = createClock({}), access = {}, log } = options;
  const id = newId('server', clock.now());
  const { connections, unlock } = await openDataDir(dataDir, id, options);
  const server = { id, isAlone: connections.others === undefined };
  return createStore(connections, { clock, access, log, server, onClosed: unlock });
}

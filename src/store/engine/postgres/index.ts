/**
 * PostgreSQL, which several servers share: one connection for writing (`writes.ts`), a few for reading (`reads.ts`), and one
 * that listens for the messages of the other servers (`listening.ts`). Each is opened when it is needed, on the host that is the
 * primary by then (`primary.ts`), and again where it is lost.
 */
import type pg from 'pg';
import { type PostgresTarget, parsePostgresUrl } from '../../../lib/postgres-url.ts';
import type { Connections } from '../dialect.ts';
import type { Use } from './connect.ts';
import { Listening, notify } from './listening.ts';
import { migrating } from './migrations.ts';
import { Primary, type TimelineNote } from './primary.ts';
import { createPool, queryOn, readingOn } from './reads.ts';
import { asRefusal, connectFirst, prepareSchema, requireUsable, type StartOptions } from './start.ts';
import { findObstacle } from './view.ts';
import { Writes } from './writes.ts';

/**
 * The most connections for reading, to which come the one that writes and the one that listens: docs/scale.md says how
 * many a database needs to allow.
 */
const sizes = {
  requests: { queries: 4, moments: 2 },
  service: { queries: 3, moments: 1 },
};

export interface PostgresOptions extends StartOptions {
  serverId: string;
  timeline?: TimelineNote | undefined;
}

/** Opens a PostgreSQL. Throws a `DomainError` with a sentence where it cannot be used. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Connections> {
  const target = parsePostgresUrl(url);
  const primary = new Primary(target, options);
  try {
    await using first = await connectFirst(primary, target, options);
    await requireUsable(first, target, options.log);
    await prepareSchema(first, target);
  } catch (error) {
    await primary.close();
    throw asRefusal(error, target);
  }
  return serving({ ...options, target, primary });
}

/** The connections to a database that can be used. */
function serving(options: PostgresOptions & { target: PostgresTarget; primary: Primary }): Connections {
  const { primary } = options;
  const pools: pg.Pool[] = [];
  const pool = (use: Use, size: number) => {
    const made = createPool(primary, use, size);
    pools.push(made);
    return made;
  };
  const forRequests = readingOn({
    queries: pool('requests', sizes.requests.queries),
    moments: pool('requests', sizes.requests.moments),
  });
  const queries = pool('service', sizes.service.queries);
  const forService = readingOn({ queries, moments: pool('service', sizes.service.moments) });
  const listening = new Listening(options);
  const writes = new Writes(primary, listening);
  return {
    ...forService,
    unordered: forService.reader,
    forRequests,
    transact: (body, { flush }) => writes.transact(body, flush),
    migrating: (body) => migrating({ ...options, listening }, body),
    async begin() {
      await listening.begin();
      void primary.watch();
    },
    failure: () => listening.failure,
    formerPrimaries: () => primary.former,
    findObstacle: () => findObstacle(primary),
    // The log is the database server's.
    emptyLog: async () => true,
    others: {
      announce: (db, changes) => writes.announce(db, changes),
      listen: (listeners) => listening.listen(listeners),
      send: async (topic, body) => void (await queryOn(queries, notify, [listening.messageOf(topic, body)])),
    },
    async [Symbol.asyncDispose]() {
      listening.close();
      // Each pool waits for running queries, whose connections end next.
      for (const one of pools) void one.end();
      await primary.close();
    },
  };
}

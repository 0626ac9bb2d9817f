/**
 * PostgreSQL, which several servers share: one connection for writing (`postgres-writes.ts`), a few for reading, and one that
 * listens to what the others tell (`postgres-others.ts`). Each is made when it is needed, and again where it is lost.
 */
import { createHash } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import { parsePostgresUrl } from '../../lib/postgres-url.ts';
import type { Schema } from '../schema.ts';
import type { Connections } from './dialect.ts';
import { createConnector } from './postgres-connect.ts';
import { readError } from './postgres-fault.ts';
import { kyselyOn } from './postgres-kysely.ts';
import { migrating } from './postgres-migrations.ts';
import { findObstacle } from './postgres-obstacle.ts';
import { Listening } from './postgres-others.ts';
import { createPool, type Pool } from './postgres-pool.ts';
import type { Result, Session } from './postgres-session.ts';
import {
  asRefusal,
  connectFirst,
  prepareSchema,
  requireUsable,
  type StartOptions,
} from './postgres-start.ts';
import { Writes } from './postgres-writes.ts';
import { removeQueries, setQueries } from './queries.ts';

/** So many for single queries, and for readings of one moment, besides the one that writes and the one that listens. */
const readers = 6;
const snapshots = 2;
/** What has waited so long when the database falls silent is failed, and asked elsewhere. */
const silentMs = 2_000;

export interface PostgresOptions extends StartOptions {
  /** By which the others know this server. */
  serverId: string;
}

/** Opens it. Throws a `DomainError` with a sentence where it cannot be used. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Connections> {
  const target = parsePostgresUrl(url);
  const connect = createConnector(target);
  const first = await connectFirst(connect, target, options);
  let schema: string;
  try {
    await requireUsable(first, target, options.log);
    schema = await prepareSchema(first, target);
  } catch (error) {
    throw asRefusal(error, target);
  } finally {
    await first.close();
  }
  const forQueries = createPool({ size: readers, connect: () => connect({ use: 'reading' }) });
  const forMoments = createPool({ size: snapshots, connect: () => connect({ use: 'reading' }) });
  const listening = new Listening({
    serverId: options.serverId,
    channel: channelOf(schema),
    connect,
    onSilence() {
      for (const one of [forQueries, forMoments, writes]) one.endIfSilent(silentMs);
    },
  });
  const notifying: Listening['notifying'] = (...commit) => listening.notifying(...commit);
  const writes = new Writes({ connect, notifying });
  const reader = readerOn(forQueries);
  return {
    reader,
    readSnapshot: (body) => snapshot(forMoments, body),
    transact: (body, options) => writes.transact(body, options),
    migrating: (body) => migrating({ ...options, connect, notifying, target }, body),
    begin: () => listening.begin(),
    findObstacle: () => findObstacle(connect),
    others: {
      announce: (db, changes) => writes.announce(db, changes),
      listen: (listeners) => listening.listen(listeners),
      async send(topic, body) {
        await queryOn(forQueries, (session) => session.script(listening.sending(topic, body)));
      },
    },
    async close() {
      await Promise.all([listening, writes, forQueries, forMoments].map((one) => one.close()));
    },
  };
}

/** Of a schema; a database has its own channels. */
function channelOf(schema: string): string {
  return `andromeda_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`;
}

/** Runs what may run twice, again on another connection where the first one was lost. */
async function queryOn<T>(pool: Pool, query: (session: Session) => Promise<T>): Promise<T> {
  try {
    for (let isFirst = true; ; isFirst = false) {
      const session = await pool.take();
      try {
        return await query(session);
      } catch (error) {
        if (!isFirst || session.isOpen) throw error;
      } finally {
        pool.give(session);
      }
    }
  } catch (error) {
    throw readError(error);
  }
}

function readerOn(pool: Pool): Kysely<Schema> {
  const run = (sql: string, parameters: readonly unknown[]) =>
    queryOn(pool, (session) => session.query(sql, parameters));
  const reader = kyselyOn<Schema>({ acquire: async () => ({ run }) });
  setQueries(reader, {
    engine: 'postgres',
    run: async <Row>(sql: string, parameters: readonly unknown[]) =>
      (await run(sql, parameters)).rows as Row[],
    countChanges: () => Number.NaN,
    async dataVersion() {
      const { rows } = await run('select version from store_version', []);
      return (rows as { version: number }[])[0]?.version ?? Number.NaN;
    },
  });
  return reader;
}

/** One moment: what its first query sees, all of them see. */
async function snapshot<T>(pool: Pool, body: (db: Transaction<Schema>) => Promise<T>): Promise<T> {
  const session = await begun(pool);
  const run = async (sql: string, parameters: readonly unknown[]): Promise<Result> => {
    try {
      return await session.query(sql, parameters);
    } catch (error) {
      throw readError(error);
    }
  };
  const kysely = kyselyOn<Schema>({
    acquire: async () => ({ run }),
    begin: async () => {},
    commit: async () => void (await session.script('commit')),
    rollback: async () => void (await session.script('rollback').catch(() => session.destroy())),
  });
  try {
    return await kysely.transaction().execute(async (db) => {
      setQueries(db, {
        engine: 'postgres',
        run: async <Row>(sql: string, parameters: readonly unknown[]) =>
          (await run(sql, parameters)).rows as Row[],
        countChanges: () => Number.NaN,
        dataVersion: () => Number.NaN,
      });
      try {
        return await body(db);
      } finally {
        removeQueries(db);
      }
    });
  } finally {
    pool.give(session);
  }
}

function begun(pool: Pool): Promise<Session> {
  return takeBegun(pool).catch(async (error: unknown) => {
    throw readError(error);
  });
}

async function takeBegun(pool: Pool): Promise<Session> {
  for (let isFirst = true; ; isFirst = false) {
    const session = await pool.take();
    try {
      await session.script('begin isolation level repeatable read, read only');
      return session;
    } catch (error) {
      pool.give(session);
      if (!isFirst || session.isOpen) throw error;
    }
  }
}

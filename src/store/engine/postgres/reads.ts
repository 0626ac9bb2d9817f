/**
 * Reads from PostgreSQL: single queries, and snapshots, by a pool of a few connections each. Requests have pools of
 * their own: however many of them are slow, or wait for locks, the service's own work goes on.
 */
import { EventEmitter } from 'node:events';
import { CompiledQuery, type Kysely } from 'kysely';
import pg from 'pg';
import type { Schema } from '../../generated/schema.ts';
import type { Reading } from '../dialect.ts';
import { setQueries, withQueries } from '../queries.ts';
import type { Result, Session, Use } from './connect.ts';
import { PostgresError, postgresError, readError } from './fault.ts';
import { kyselyOn, queriesOf } from './kysely.ts';
import type { Primary } from './primary.ts';

/** Waiting longer for a connection means that the database is away, not that a query is slow. */
const waitMs = 10_000;

/** A client as `pg.Pool` has it: a connection to the primary, whichever host that is by then. */
type Client = pg.PoolClient & { readonly session: Session };

/** A pool of at most `size` connections, which are opened when they are needed, and closed after 10 s without use. */
export function createPool(primary: Primary, use: Use, size: number): pg.Pool {
  class PrimaryClient extends EventEmitter {
    session: Session | undefined;
    readonly #givenUp = Promise.withResolvers<never>();
    readonly _ending = false;
    get _queryable(): boolean {
      return this.session?.isOpen ?? false;
    }
    isConnected = () => this._queryable;
    async connect(done: (error?: unknown) => void): Promise<void> {
      const connecting = primary.connect(use);
      try {
        this.session = await Promise.race([connecting, this.#givenUp.promise]);
        // The pool drops a session that ends while it is idle.
        this.session.once('end', () => this.emit('error', new Error('the connection has ended')));
        this.on('error', () => {});
      } catch (error) {
        void connecting.then((late) => late.close()).catch(() => {});
        return done(error);
      }
      done();
    }
    /** The pool calls it without `done` where connecting takes too long. */
    end(done?: () => void): void {
      this.#givenUp.reject(
        new PostgresError(`no host answered within ${waitMs / 1_000} s`, { isLost: true }),
      );
      void this.session?.close();
      done?.();
    }
  }
  const pool = new pg.Pool({
    max: size,
    connectionTimeoutMillis: waitMs,
    Client: PrimaryClient as unknown as new () => pg.ClientBase,
  });
  return pool.on('error', () => {});
}

/** Calls `run` on a connection, and again on another one where the first was lost. The caller releases the client. */
async function begin<T>(
  pool: pg.Pool,
  run: (session: Session) => Promise<T>,
): Promise<{ client: Client; result: T }> {
  for (let isFirst = true; ; isFirst = false) {
    const client = (await pool.connect().catch((error: unknown) => {
      throw readError(postgresError(error));
    })) as Client;
    try {
      return { client, result: await run(client.session) };
    } catch (error) {
      client.release();
      if (!isFirst || client.session.isOpen) throw readError(error);
    }
  }
}

export async function queryOn(
  pool: pg.Pool,
  sql: string,
  parameters: readonly unknown[] = [],
): Promise<Result> {
  const { client, result } = await begin(pool, (session) => session.query(sql, parameters));
  client.release();
  return result;
}

/** `moments` is for snapshots: the holder of one of its connections may also need one of `queries`. */
export function readingOn({ queries, moments }: { queries: pg.Pool; moments: pg.Pool }): Reading {
  const run = (sql: string, parameters: readonly unknown[]) => queryOn(queries, sql, parameters);
  const reader = kyselyOn<Schema>(async () => ({ run }));
  setQueries(reader, {
    ...queriesOf(run),
    async dataVersion() {
      const { rows } = await run('select version from store_version', []);
      return (rows as { version: number }[])[0]?.version ?? Number.NaN;
    },
  });
  return { reader, readSnapshot: snapshotsOn(moments) };
}

/** A snapshot: all queries see what the first one sees. */
function snapshotsOn(pool: pg.Pool): Reading['readSnapshot'] {
  const kysely: Kysely<Schema> = kyselyOn(async () => {
    const { client } = await begin(pool, (session) =>
      session.script('begin isolation level repeatable read, read only'),
    );
    const { session } = client;
    // The reads were of one snapshot, however the transaction ends.
    const end = (how: string) => async () => void (await session.script(how).catch(() => session.destroy()));
    return {
      run: (sql, parameters) =>
        session.query(sql, parameters).catch((error: unknown) => {
          throw readError(error);
        }),
      begin: async () => {},
      commit: end('commit'),
      rollback: end('rollback'),
      release: () => client.release(),
    };
  });
  return (body) =>
    kysely.transaction().execute((db) => {
      const queries = queriesOf((sql, parameters) =>
        db.executeQuery(CompiledQuery.raw(sql, [...parameters])),
      );
      return withQueries(db, queries, body);
    });
}

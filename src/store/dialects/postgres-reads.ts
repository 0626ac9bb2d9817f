/**
 * Reading from PostgreSQL: single queries, and several of one moment, on a few connections each. Requests have theirs, and what
 * the service does by itself has others: however many ask for what is slow, or locked, the service goes on.
 */
import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../schema.ts';
import type { Reading } from './dialect.ts';
import { readError } from './postgres-fault.ts';
import type { HeldUp } from './postgres-held-up.ts';
import { kyselyOn, queriesOf } from './postgres-kysely.ts';
import type { Pool } from './postgres-pool.ts';
import type { Result, Session } from './postgres-session.ts';
import { removeQueries, setQueries } from './queries.ts';

export interface ReadingOptions {
  queries: Pool;
  /** For readings of one moment: whoever has one of these may want one of the others too. */
  moments: Pool;
  heldUp: HeldUp;
}

type Ask = (session: Session, sql: string, parameters: readonly unknown[]) => Promise<Result>;

export function readingOn({ queries, moments, heldUp }: ReadingOptions): Reading {
  const ask: Ask = (session, sql, parameters) => heldUp.run(sql, () => session.query(sql, parameters));
  return {
    reader: readerOn(queries, ask),
    readSnapshot: (body) => snapshot(moments, ask, body),
  };
}

/** Runs what may run twice, again on another connection where the first one was lost. */
export async function queryOn<T>(pool: Pool, query: (session: Session) => Promise<T>): Promise<T> {
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

function readerOn(pool: Pool, ask: Ask): Kysely<Schema> {
  const run = (sql: string, parameters: readonly unknown[]) =>
    queryOn(pool, (session) => ask(session, sql, parameters));
  const reader = kyselyOn<Schema>({ acquire: async () => ({ run }) });
  setQueries(reader, {
    ...queriesOf(run),
    async dataVersion() {
      const { rows } = await run('select version from store_version', []);
      return (rows as { version: number }[])[0]?.version ?? Number.NaN;
    },
  });
  return reader;
}

/** One moment: what its first query sees, all of them see. */
async function snapshot<T>(pool: Pool, ask: Ask, body: (db: Transaction<Schema>) => Promise<T>): Promise<T> {
  const session = await begun(pool);
  const run = async (sql: string, parameters: readonly unknown[]): Promise<Result> => {
    try {
      return await ask(session, sql, parameters);
    } catch (error) {
      throw readError(error);
    }
  };
  const kysely = kyselyOn<Schema>({
    acquire: async () => ({ run }),
    begin: async () => {},
    // What was read is of one moment, however this ends.
    commit: async () => void (await session.script('commit').catch(() => session.destroy())),
    rollback: async () => void (await session.script('rollback').catch(() => session.destroy())),
  });
  try {
    return await kysely.transaction().execute(async (db) => {
      setQueries(db, queriesOf(run));
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

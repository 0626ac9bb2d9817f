/**
 * Which moment of the database reads see. SQLite shows a commit at once; while one is not on disk yet, reads are held at
 * the moment before it.
 */
import type Database from 'better-sqlite3';
import { type StatementCache, statementCache } from './sqlite-kysely.ts';

export interface Moments extends StatementCache {
  /** Queries see the present moment, or an earlier one that they see already, until released. */
  hold(): void;
  /** Queries that begin from now on see what was committed. */
  release(): void;
}

/** Any read takes the moment: `begin` alone does not. */
const takeMoment = 'select 1 from sqlite_schema limit 1';

/**
 * The statements of a connection for single queries. Those of one iteration of the event loop share a moment, because to
 * begin one takes longer than a query by key. It ends with the iteration, or before: whoever commits ends it, so that
 * what is committed is seen at once, and SQLite's log can begin anew.
 */
export function sharedMoments(database: Database.Database): Moments & { end(): void } {
  const statements = statementCache(database);
  let isBegun = false;
  let isHeld = false;
  function begin(): void {
    if (isBegun) return;
    isBegun = true;
    statements.prepare('begin').run();
    setImmediate(end);
  }
  function end(): void {
    if (!isBegun || isHeld) return;
    isBegun = false;
    statements.prepare('rollback').run();
  }
  return {
    inTransaction: false,
    prepare(sql) {
      begin();
      return statements.prepare(sql);
    },
    end,
    hold() {
      begin();
      statements.prepare(takeMoment).get();
      isHeld = true;
    },
    release() {
      isHeld = false;
      end();
    },
    close() {
      isHeld = false;
      end();
      statements.close();
    },
  };
}

/**
 * The statements of a connection for transactions that only read. One that ends while the moment is held leaves it
 * to the next, and so does one that began before.
 */
export function transactionMoments(database: Database.Database): Moments {
  const statements = statementCache(database);
  const nothing = database.prepare('select 1 where 0');
  let isUsed = false;
  let isHeld = false;
  return {
    get inTransaction() {
      return database.inTransaction;
    },
    prepare(sql) {
      if (sql === 'begin') {
        isUsed = true;
        if (database.inTransaction) return nothing;
      }
      if (sql === 'commit' || sql === 'rollback') {
        isUsed = false;
        if (isHeld) return nothing;
      }
      return statements.prepare(sql);
    },
    hold() {
      isHeld = true;
      if (!database.inTransaction) statements.prepare('begin').run();
      statements.prepare(takeMoment).get();
    },
    release() {
      isHeld = false;
      if (!isUsed && database.inTransaction) statements.prepare('rollback').run();
    },
    close: statements.close,
  };
}

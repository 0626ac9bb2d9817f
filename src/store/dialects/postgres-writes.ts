/**
 * Writes on PostgreSQL, one after the other over all servers: each begins with the one row that is their lock, their
 * version and their fence. READ COMMITTED is enough behind it, for nobody else writes meanwhile, and what it reads is what
 * the one before committed.
 */
import type { Kysely, Transaction } from 'kysely';
import type { Change } from '../changes.ts';
import type { Schema } from '../schema.ts';
import type { Connect } from './postgres-connect.ts';
import { type Committing, incarnationOf, isOfStandby, outcomeOf } from './postgres-doubt.ts';
import { CommitInDoubt, MovedAway, PostgresError, postgresError } from './postgres-fault.ts';
import type { HeldUp } from './postgres-held-up.ts';
import { kyselyOn } from './postgres-kysely.ts';
import type { Listening } from './postgres-others.ts';
import { lastRow, type Result, type Session, type Warning } from './postgres-session.ts';
import { removeQueries, setQueries } from './queries.ts';

interface Write extends Committing {
  readonly session: Session;
  readonly run: (sql: string, parameters: readonly unknown[]) => Promise<Result>;
  xid: string;
  version: number;
  changed: number;
  /** A statement failed: PostgreSQL takes no other one before the transaction, or a part of it, is rolled back. */
  isBroken: boolean;
  isCommitting: boolean;
  readonly began: number;
  readonly changes: Change[];
}

/** A commit that takes longer waits for a standby that does not come, or for a host that is gone: it is in doubt then. */
const commitMs = 10_000;
/** Once a write has the lock of all writes, whatever else it waits for is locked by another program. */
const otherLocksMs = 2_000;

export interface WritesOptions {
  connect: Connect;
  notifying: Listening['notifying'];
  heldUp: HeldUp;
  onCommitted(version: number): void;
}

export class Writes {
  readonly #connect: Connect;
  readonly #notifying: Listening['notifying'];
  readonly #heldUp: HeldUp;
  readonly #onCommitted: WritesOptions['onCommitted'];
  readonly #writer: Kysely<Schema>;
  #session: Session | undefined;
  #incarnation = '';
  #write: Write | undefined;
  #flush = true;
  /** A standby that was waited for in vain: the commit is on this server alone. */
  #isAlone = false;

  constructor({ connect, notifying, heldUp, onCommitted }: WritesOptions) {
    this.#connect = connect;
    this.#notifying = notifying;
    this.#heldUp = heldUp;
    this.#onCommitted = onCommitted;
    this.#writer = kyselyOn({
      acquire: () => this.#acquire(),
      begin: () => begin(of(this.#write)),
      commit: () => this.#commit(of(this.#write)),
      rollback: async () => {
        const { session } = of(this.#write);
        await session.script('rollback').catch(() => session.destroy());
      },
    });
  }

  async transact<T>(
    body: (db: Transaction<Schema>) => Promise<T>,
    { flush }: { flush: boolean },
  ): Promise<T> {
    this.#flush = flush;
    this.#write = undefined;
    try {
      return await this.#once(body);
    } catch (error) {
      if (error instanceof CommitInDoubt || !wasLost(this.#write)) throw error;
      return await this.#once(body);
    }
  }

  announce(db: Transaction<Schema>, changes: readonly Change[]): void {
    changesOf.get(db)?.push(...changes);
  }

  endIfSilent(ms: number): void {
    this.#session?.endIfSilent(ms);
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }

  async #acquire(): Promise<Write> {
    const onWarning = (warning: Warning) => {
      if (isOfStandby(warning)) this.#isAlone = true;
    };
    if (!this.#session?.isOpen) {
      const session = await this.#connect({ use: 'writing', onWarning });
      this.#session = session;
      this.#incarnation = await incarnationOf(session).catch((error: unknown) => {
        session.destroy();
        throw error;
      });
    }
    const [session, incarnation] = [this.#session, this.#incarnation];
    this.#write = newWrite({ session, incarnation, flush: this.#flush, heldUp: this.#heldUp });
    return this.#write;
  }

  async #once<T>(body: (db: Transaction<Schema>) => Promise<T>): Promise<T> {
    return this.#writer.transaction().execute(async (db) => {
      const write = of(this.#write);
      setQueries(db, {
        engine: 'postgres',
        run: async <Row>(sql: string, parameters: readonly unknown[]) =>
          (await write.run(sql, parameters)).rows as Row[],
        countChanges: () => (write.isBroken || !write.session.isOpen ? Number.NaN : write.changed),
        dataVersion: () => write.version,
      });
      changesOf.set(db, write.changes);
      try {
        return await body(db);
      } finally {
        removeQueries(db);
      }
    });
  }

  async #commit(write: Write): Promise<void> {
    this.#isAlone = false;
    // PostgreSQL would roll it back, and say that it did.
    if (write.isBroken) throw new PostgresError('a statement of the transaction failed', { isLost: false });
    write.isCommitting = true;
    const cause = await this.#tryCommit(write);
    const outcome = cause === undefined ? 'committed' : await outcomeOf(write, this.#connect);
    if (outcome === 'committed') {
      this.#onCommitted(write.version);
      return;
    }
    if (outcome === undefined) throw new CommitInDoubt(cause);
    write.isCommitting = false;
    throw cause;
  }

  /** Throws where it was rolled back. Resolves to why it is in doubt, if it is. */
  async #tryCommit(write: Write): Promise<PostgresError | undefined> {
    // What took long to write takes long to arrive at a standby.
    const limitMs = Math.max(commitMs, performance.now() - write.began);
    const late = setTimeout(() => write.session.destroy(), limitMs);
    try {
      const results = await write.session.script(`${this.#notifying(write.version, write.changes)}; commit`);
      if (results.at(-1)?.command !== 'COMMIT')
        throw new PostgresError('the transaction was rolled back', { isLost: false });
    } catch (error) {
      if (write.session.isOpen) throw error;
      return postgresError(error);
    } finally {
      clearTimeout(late);
    }
    return this.#isAlone ? new PostgresError('no standby has the commit', { isLost: false }) : undefined;
  }
}

async function begin(write: Write): Promise<void> {
  try {
    const results = await write.session.script(beginning(write));
    const row = lastRow<{ version: number; xid: string }>(results);
    if (!row) throw new MovedAway('service_unavailable');
    write.version = row.version;
    write.xid = row.xid;
  } catch (error) {
    await write.session.script('rollback').catch(() => {});
    throw error;
  }
}

/** Whether its connection was lost before there was anything to commit: nothing of it is there. */
function wasLost(write: Write | undefined): boolean {
  return write !== undefined && !write.isCommitting && !write.session.isOpen;
}

/** What the transactions under way announce. */
const changesOf = new WeakMap<Kysely<Schema>, Change[]>();

function beginning({ flush }: Write): string {
  return [
    'begin isolation level read committed',
    ...(flush ? [] : ['set local synchronous_commit to off']),
    // What returns is worked out when the row is locked.
    `update store_version set version = version + 1
      returning version, pg_current_xact_id()::text as xid, set_config('lock_timeout', '${otherLocksMs}', true)`,
  ].join('; ');
}

function newWrite({
  heldUp,
  ...given
}: Pick<Write, 'session' | 'incarnation' | 'flush'> & { heldUp: HeldUp }): Write {
  const { session } = given;
  const write: Write = {
    ...given,
    xid: '',
    version: 0,
    changed: 0,
    isBroken: false,
    isCommitting: false,
    began: performance.now(),
    changes: [],
    run: (sql, parameters) => heldUp.run(sql, () => ask(sql, parameters)),
  };
  async function ask(sql: string, parameters: readonly unknown[]): Promise<Result> {
    try {
      const result = await session.query(sql, parameters);
      if (/^(INSERT|UPDATE|DELETE)$/.test(result.command)) write.changed += result.rowCount ?? 0;
      if (result.command === 'ROLLBACK') write.isBroken = false;
      return result;
    } catch (error) {
      write.isBroken = true;
      throw error;
    }
  }
  return write;
}

function of(write: Write | undefined): Write {
  if (!write) throw new Error('no write is under way');
  return write;
}

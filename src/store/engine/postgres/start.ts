/** Checks of a PostgreSQL when a server starts on it: whether it can be used, and warnings for operators. */
import { setTimeout as wait } from 'node:timers/promises';
import { DomainError, StoppedError } from '../../../domain/error.ts';
import { clockAhead, clockLimitMs } from '../../../domain/server.ts';
import type { Logger } from '../../../lib/log.ts';
import { describePostgres, type PostgresTarget } from '../../../lib/postgres-url.ts';
import { quoteName, type Session } from './connect.ts';
import { PostgresError } from './fault.ts';
import type { Primary } from './primary.ts';

export interface StartOptions {
  /** The log of a server, which waits while the database is away. Left out: that is an error at once. */
  log?: Logger | undefined;
  /** Resolves when the server is to stop instead. */
  stopping?: Promise<unknown> | undefined;
  /** While the database is copied: writes may have been ended (`endWrites`). */
  isCopying?: boolean | undefined;
}

const retryMs = 1_000;
/** Any number that no other program takes for its advisory locks. */
const schemaLock = 1_634_626_674;
/** The first version with `pg_current_xact_id`, by which the outcome of a commit is asked. */
const oldestVersion = 130_000;

/**
 * Makes the first connection. A server waits for it as long as it takes, except for faults that an operator has to
 * mend: every host of the URL refuses the user or the database, has no TLS, or has a certificate that is not accepted.
 */
export async function connectFirst(
  primary: Primary,
  target: PostgresTarget,
  { log, stopping }: StartOptions,
): Promise<Session> {
  const away = log && createAwayLog(log);
  const stopped = untilStopped(stopping);
  for (;;) {
    // Several may take writes: the one that took over last is known when all have been asked.
    const connecting = primary.askOthers().then(() => primary.connect('reading'));
    try {
      const session = await Promise.race([connecting, stopped]);
      if (away?.hasSaid) log?.info('database.back', {});
      return session;
    } catch (error) {
      if (error instanceof StoppedError) {
        // A connection that comes later is closed.
        connecting.then((session) => session.close()).catch(() => {});
        throw error;
      }
      const { message } = error as Error;
      const refusal = refusalOf(error);
      if (refusal !== undefined) throw unusable(target, refusal, 'invalid_state');
      if (!away) throw unusable(target, message, 'service_unavailable');
      away.say(message);
      await Promise.race([wait(retryMs), stopped]);
    }
  }
}

/** The fault that an operator has to mend before a connection succeeds; undefined where waiting may help. */
function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof PostgresError)) return undefined;
  const { sqlState = '', isOfTls, message } = error;
  if (isOfTls) return message;
  if (sqlState === '28P01')
    return `${message}. In a URL, a password is percent-encoded: @ as %40, / as %2F, # as %23, ? as %3F, % as %25`;
  return /^(28|3D)/.test(sqlState) ? message : undefined;
}

export interface AwayLog {
  readonly hasSaid: boolean;
  say(message: string): void;
}

const firstSilentMs = 10_000;
const longestSilentMs = 600_000;
/** Messages to remember: hosts that fail in turns have a few. */
const mostMessages = 8;

/** Logs why the database is away: a new message at once, the same again at growing intervals, for the log of each day. */
export function createAwayLog(log: Logger, now = () => performance.now()): AwayLog {
  const began = now();
  const said = new Set<string>();
  let silentMs = firstSilentMs;
  let last = began;
  return {
    get hasSaid() {
      return said.size > 0;
    },
    say(message) {
      const isNew = !said.has(message) && said.size < mostMessages;
      if (!isNew && now() - last < silentMs) return;
      if (!isNew) silentMs = Math.min(longestSilentMs, silentMs * 2);
      said.add(message);
      last = now();
      log.warn('database.away', { message, waitedMs: Math.round(last - began) });
    },
  };
}

/** Rejects with `StoppedError` when the server is to stop, and never resolves. Make one for several waits in a row. */
export function untilStopped(stopping: StartOptions['stopping']): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  stopping?.then(() => reject(new StoppedError('Stopped while it waited for the database.')));
  return promise;
}

/** An error at the start, as a refusal with a sentence where a right is missing, or the database cannot be used. */
export function asRefusal(error: unknown, target: PostgresTarget): unknown {
  if (!(error instanceof PostgresError)) return error;
  const { sqlState, message, isLost } = error;
  if (sqlState === '42501')
    return unusable(
      target,
      / for (database|schema) /.test(message)
        ? `${message}. Its user has to own it: alter database "${target.database}" owner to "${target.user}"`
        : `${message}. Its user has to own all that is in it: create a database that is its own, and restore the dump into it as "${target.user}" (docs/operations.md)`,
      'invalid_state',
    );
  // It is no standby: to one, no connection would have been made.
  if (sqlState === '25006') return unusable(target, `it takes no writes: ${message}`, 'invalid_state');
  return isLost ? unusable(target, message, 'service_unavailable') : error;
}

/** Throws `invalid_state` with a sentence where it cannot be used; warnings for operators go into the log. */
export async function requireUsable(
  session: Session,
  target: PostgresTarget,
  log: Logger | undefined,
): Promise<void> {
  const before = Date.now();
  const { rows } = await session.query(question);
  const after = Date.now();
  const [state] = rows as DatabaseState[];
  if (!state) throw new Error('PostgreSQL does not say what it is');
  const refuse = (reason: string) => unusable(target, reason, 'invalid_state');
  if (state.version < oldestVersion) throw refuse('it is older than PostgreSQL 13');
  if (state.encoding !== 'UTF8')
    throw refuse(`its encoding is ${state.encoding}. Create it with: create database … encoding 'UTF8'`);
  if (!isC(state))
    throw refuse(
      `its collation is ${state.locale ?? state.collation}, by which texts sort otherwise than in this service. Create it with: create database … template template0 encoding 'UTF8' locale 'C'`,
    );
  const offMs = clockAhead(state.now, before, after);
  if (Math.abs(offMs) >= clockLimitMs) log?.warn('database.clock', { differsMs: offMs });
  if (state.isOpen)
    log?.warn('database.open', {
      message: `Every role of this PostgreSQL may connect to the database, and can hold up servers that start there, or make locks and waits that no right is needed for. Take that away: grant connect, temporary on database "${target.database}" to "${target.user}"; revoke connect, temporary on database "${target.database}" from public`,
    });
  if (state.standbys === '' || state.commit === 'off' || state.commit === 'local')
    log?.warn('database.standby', { synchronousStandbys: state.standbys, synchronousCommit: state.commit });
}

/** Requires a schema to make tables in; the one that the URL names is made where it is missing. */
export async function prepareSchema(session: Session, target: PostgresTarget): Promise<void> {
  const { rows } = await session.query('select current_schema() as schema');
  if ((rows as { schema: string | null }[])[0]?.schema) return;
  if (target.schema === undefined) throw unusable(target, 'it has no schema for tables', 'invalid_state');
  // Two servers that make it at once would make each other fail.
  await session.script(
    `select pg_advisory_xact_lock(${schemaLock}); create schema if not exists ${quoteName(target.schema)}`,
  );
}

interface DatabaseState {
  version: number;
  encoding: string;
  collation: string;
  provider: string | null;
  locale: string | null;
  now: number;
  standbys: string;
  commit: string;
  /** Whether any role of the PostgreSQL server can connect. */
  isOpen: boolean;
}

// Versions differ in the columns for the provider of a collation.
const question = `
  select current_setting('server_version_num')::int as version,
    pg_encoding_to_char(d.encoding) as encoding, d.datcollate as collation,
    to_jsonb(d) ->> 'datlocprovider' as provider,
    coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') as locale,
    extract(epoch from clock_timestamp())::float8 * 1000 as now,
    has_database_privilege('public', d.oid, 'connect') as "isOpen",
    current_setting('synchronous_standby_names') as standbys, current_setting('synchronous_commit') as commit
  from pg_database d where datname = current_database()`;

/** Whether texts sort by bytes of UTF-8, as in SQLite; so do the locales of PostgreSQL 17's own provider. */
function isC({ provider, collation, locale }: DatabaseState): boolean {
  if (provider === 'i') return false;
  if (provider === 'b') return ['C', 'C.UTF-8', 'C.UTF8', 'PG_C_UTF8'].includes(locale ?? '');
  return collation === 'C' || collation === 'POSIX';
}

export function unusable(
  target: PostgresTarget,
  reason: string,
  code: 'invalid_state' | 'service_unavailable',
): DomainError {
  return new DomainError(code, `The database ${describePostgres(target)} cannot be used: ${reason}.`);
}

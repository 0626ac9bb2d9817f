/** One connection to PostgreSQL: TLS as libpq means it, timeouts, and statements that are prepared once. */
import { EventEmitter } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import pg from 'pg';
import { storedTexts } from '../../../domain/text.ts';
import type { PostgresTarget } from '../../../lib/postgres-url.ts';
import { PostgresError, postgresError } from './fault.ts';

export type Host = PostgresTarget['hosts'][number];

export interface Result {
  rows: unknown[];
  rowCount: number | null;
  command: string;
}

export interface Warning {
  message: string;
  /** The routine in PostgreSQL's source that sent it. */
  routine: string | undefined;
}

/** The state that a host reports; no timeline while it is a standby. */
export interface HostState {
  /** The system identifier from initdb, which standbys share. */
  system: string;
  timeline: string | null;
}

export type Use = keyof typeof settings;

/** Timeout of a connection: a host that answers takes milliseconds, and the hosts behind it must be tried soon. */
const connectMs = 3_000;
/** A host that is gone does not confirm the end of the connection. */
const closeMs = 1_000;

/**
 * `answerMs`: a host that is gone sends no answer, so a connection that waits longer for one is given up. The others
 * are PostgreSQL's timeouts: reads wait only for locks of other programs; a read for a request takes milliseconds. A
 * server that is suspended while it holds the write lock loses it after 5 s; those that wait for it give up later. A
 * commit has none there: one that is cancelled while it waits for a standby has been made all the same.
 */
const settings = {
  reading: { answerMs: 35_000, idle_in_transaction_session_timeout: '60s', statement_timeout: '30s' },
  requests: {
    ...{ answerMs: 15_000, idle_in_transaction_session_timeout: '60s' },
    ...{ lock_timeout: '1s', statement_timeout: '10s' },
  },
  service: {
    ...{ answerMs: 35_000, idle_in_transaction_session_timeout: '60s' },
    ...{ lock_timeout: '2s', statement_timeout: '30s' },
    // For its only writes without the write lock: that this server is live.
    synchronous_commit: 'off',
  },
  writing: {
    ...{ answerMs: 35_000, idle_in_transaction_session_timeout: '5s' },
    ...{ lock_timeout: '15s', statement_timeout: '0' },
  },
  listening: { answerMs: 5_000, statement_timeout: '5s' },
  migrating: { answerMs: 0, lock_timeout: '0', statement_timeout: '0' },
};

const askState = `
  select system_identifier::text as system,
    case when not pg_is_in_recovery() then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline
  from pg_control_system()`;

/** Connects to a host, primary or not. Throws a `PostgresError`. */
export async function connectTo(
  host: Host,
  target: PostgresTarget,
  use: Use,
): Promise<{ session: Session; state: HostState }> {
  const { answerMs, ...limits } = settings[use];
  const session = new Session(await openClient(host, target, answerMs));
  const late = setTimeout(() => session.destroy(), connectMs);
  try {
    const sets = Object.entries({ standard_conforming_strings: 'on', ...limits }).map(
      ([name, value]) => `set ${name} to ${quote(value)}`,
    );
    if (target.schema !== undefined) sets.push(`set search_path to ${quoteName(target.schema)}`);
    const state = lastRow<HostState>(await session.script([...sets, askState].join('; ')));
    if (!state) throw new PostgresError('it does not say what it is', { isLost: true });
    return { session, state };
  } catch (error) {
    session.destroy();
    throw error;
  } finally {
    clearTimeout(late);
  }
}

/** A connection that ends at every error, except for those that PostgreSQL answers a statement with. */
export class Session extends EventEmitter<{ notification: [string]; warning: [Warning]; end: [] }> {
  readonly #client: pg.Client;
  #isOpen = true;

  constructor(client: pg.Client) {
    super();
    this.#client = client;
    const end = () => this.#end();
    client.on('error', end).on('end', end);
    client.on('notification', ({ payload = '' }) => void this.emit('notification', payload));
    client.on('notice', ({ message = '', routine }) => void this.emit('warning', { message, routine }));
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Runs one statement, prepared at its first use. It is sent at once, and runs behind those that were sent before.
   * NUL, for which PostgreSQL refuses a statement, is U+FFFD in it.
   */
  query(sql: string, parameters: readonly unknown[] = []): Promise<Result> {
    const name = nameOf(sql);
    const values = storedTexts(parameters) as unknown[];
    return this.#answerTo(() => this.#client.query({ ...(name && { name }), text: sql, values }));
  }

  /** Runs statements without parameters, at once; resolves to the result of each. */
  script(sql: string): Promise<Result[]> {
    return this.#answerTo(async () => {
      const results: unknown = await this.#client.query(sql);
      return (Array.isArray(results) ? results : [results]) as Result[];
    });
  }

  destroy(): void {
    this.#end();
    // The client's `end` would wait for running statements.
    streamOf(this.#client).destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#end();
    const late = setTimeout(() => this.destroy(), closeMs);
    await this.#client.end().catch(() => {});
    clearTimeout(late);
  }

  #end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.emit('end');
  }

  async #answerTo<T>(ask: () => Promise<T>): Promise<T> {
    try {
      if (!this.#isOpen) throw new PostgresError('the connection has ended', { isLost: true });
      sendTogether(streamOf(this.#client));
      return await ask();
    } catch (error) {
      const ours = postgresError(error);
      if (ours.isLost) this.destroy();
      throw ours;
    }
  }
}

/** The only row of the last of several statements. */
export function lastRow<Row>(results: readonly Result[]): Row | undefined {
  return results.at(-1)?.rows[0] as Row | undefined;
}

/** A text as a literal; every connection is set to take backslashes as they are. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Names of statements, the same on each connection. Their texts are bounded by the code; IN lists of many lengths are not. */
const names = new Map<string, string>();
const mostNames = 1000;

function nameOf(sql: string): string | undefined {
  const known = names.get(sql);
  if (known !== undefined || names.size >= mostNames) return known;
  const name = `s${names.size}`;
  names.set(sql, name);
  return name;
}

/** Sends statements that are started together in one packet. */
function sendTogether(stream: Duplex): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

function streamOf(client: pg.Client): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream;
}

async function openClient(host: Host, target: PostgresTarget, answerMs: number): Promise<pg.Client> {
  const ssl = tlsFor(host.host, target);
  try {
    return await open(host, target, { ssl, query_timeout: answerMs });
  } catch (error) {
    const isWithoutTls = /does not support SSL/.test((error as Error).message);
    if (target.sslMode !== 'prefer' || !isWithoutTls) throw postgresError(error);
    return await open(host, target, { ssl: false, query_timeout: answerMs }).catch((reason: unknown) => {
      throw postgresError(reason);
    });
  }
}

async function open(
  { host, port }: Host,
  { user, password, database }: PostgresTarget,
  more: pg.ClientConfig,
): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host, port, user, password, database, ...more },
    application_name: 'andromeda',
    // Statements are sent without waiting for the answers to those before.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    connectionTimeoutMillis: connectMs,
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  });
  // Ignores errors until the session listens for them; before that, `connect` throws them.
  client.on('error', () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.end().catch(() => {});
    throw error;
  }
}

/** Parses numbers, `count` and `sum` among them, and booleans; all other types stay texts. */
function parserOf(oid: number): (text: string) => unknown {
  if (numbers.has(oid)) return Number;
  return oid === 16 ? (text) => text === 't' : (text) => text;
}

/** `int8`, `int2`, `int4`, `oid`, `float4`, `float8` and `numeric`, as `pg_type` numbers them. */
const numbers = new Set([20, 21, 23, 26, 700, 701, 1700]);

/** https://www.postgresql.org/docs/current/libpq-ssl.html. A Unix socket has no TLS, but the file must be readable. */
function tlsFor(host: string, { sslMode, sslRootCert }: PostgresTarget): ConnectionOptions | false {
  if (sslMode === 'disable') return false;
  const ca = authorities(sslRootCert);
  if (host.includes('/')) return false;
  const unchecked = { rejectUnauthorized: false };
  if (sslMode === 'prefer') return unchecked;
  // With a root certificate, libpq treats `require` as `verify-ca`.
  if (sslMode === 'require' && ca === undefined) return unchecked;
  const isFull = sslMode === 'verify-full';
  return {
    ...(ca !== undefined && { ca }),
    ...(isIP(host) === 0 && { servername: host }),
    checkServerIdentity: (_name, certificate) =>
      isFull ? checkServerIdentity(host, certificate) : undefined,
  };
}

/** The certificates of trusted authorities; undefined: the system's own. Throws where the file cannot be read. */
function authorities(file: string | undefined): string | undefined {
  if (file === 'system') return undefined;
  const usual = join(homedir(), '.postgresql', 'root.crt');
  const read = file ?? (existsSync(usual) ? usual : undefined);
  try {
    return read && readFileSync(read, 'utf8');
  } catch (error) {
    throw new PostgresError(`sslrootcert: ${(error as Error).message}`, { isLost: true, isOfTls: true });
  }
}

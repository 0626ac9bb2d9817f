/** The way to PostgreSQL: the hosts in their order, TLS as libpq means it, and what every connection is set to. */
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import type pg from 'pg';
import { messageOf } from '../../lib/error-message.ts';
import { addressOf, type PostgresTarget } from '../../lib/postgres-url.ts';
import { PostgresError, postgresError } from './postgres-fault.ts';
import { createSession, lastRow, type Session, type SessionEvents } from './postgres-session.ts';

export interface ConnectOptions extends SessionEvents {
  /** What it is for: other limits hold for each. */
  use: keyof typeof settings;
}

export type Connect = (options: ConnectOptions) => Promise<Session>;

/** A host that answers takes milliseconds; those behind it are to be asked soon. */
const connectMs = 3_000;
/** Where connecting failed, nobody tries again for so long. */
export const restMs = 500;

/**
 * A server that stands still while it holds the lock of writes loses it after 5 s. Who waits for that lock gives up later.
 * A commit has no limit here: one that is cancelled while it waits for a standby has been made all the same.
 * What reads waits for locks that other programs took, and for no others; a read for a request takes milliseconds.
 */
const settings = {
  reading: { idle_in_transaction_session_timeout: '60s', statement_timeout: '30s' },
  requests: { idle_in_transaction_session_timeout: '60s', lock_timeout: '2s', statement_timeout: '10s' },
  service: {
    idle_in_transaction_session_timeout: '60s',
    lock_timeout: '2s',
    statement_timeout: '30s',
    // Of what it writes without the lock of writes: that it is there.
    synchronous_commit: 'off',
  },
  messages: { lock_timeout: '2s', statement_timeout: '5s' },
  writing: { idle_in_transaction_session_timeout: '5s', lock_timeout: '15s', statement_timeout: '0' },
  listening: { statement_timeout: '5s' },
  migrating: { lock_timeout: '0', statement_timeout: '0' },
};

/** Connects to the first host that can be written to: the one of last time, or else in their order. */
export function createConnector(target: PostgresTarget): Connect {
  let last = target.hosts[0];
  let failed: { until: number; error: PostgresError } | undefined;
  return async (options) => {
    if (failed && performance.now() < failed.until) throw failed.error;
    const reasons: string[] = [];
    const states = new Set<string | undefined>();
    let isOfTls = true;
    const hosts = [last, ...target.hosts.filter((host) => host !== last)].filter(
      (host) => host !== undefined,
    );
    for (const host of hosts) {
      try {
        const session = await connectTo(host, target, options);
        last = host;
        failed = undefined;
        return session;
      } catch (error) {
        reasons.push(`${addressOf(host)}: ${messageOf(error)}`);
        states.add(error instanceof PostgresError ? error.sqlState : undefined);
        isOfTls &&= error instanceof PostgresError && error.isOfTls;
      }
    }
    // What all of them say is no matter of one host.
    const sqlState = states.size === 1 ? [...states][0] : undefined;
    const error = new PostgresError(reasons.join('; '), { sqlState, isLost: true, isOfTls });
    failed = { until: performance.now() + restMs, error };
    throw error;
  };
}

async function connectTo(
  host: PostgresTarget['hosts'][number],
  target: PostgresTarget,
  { use, ...events }: ConnectOptions,
): Promise<Session> {
  const client = await openClient(host, target);
  const session = createSession(client, { events, patient: use === 'migrating' });
  const late = setTimeout(() => session.destroy(), connectMs);
  try {
    const all = {
      standard_conforming_strings: 'on',
      ...settings[use],
      ...(target.schema !== undefined && { search_path: `"${target.schema.replaceAll('"', '""')}"` }),
    };
    const sets = Object.entries(all).map(([name, value]) => `set ${name} to ${literal(value, name)}`);
    const results = await session.script([...sets, 'select pg_is_in_recovery() as standby'].join('; '));
    if (lastRow<{ standby: boolean }>(results)?.standby)
      throw new PostgresError('it is a standby', { isLost: true });
    return session;
  } catch (error) {
    session.destroy();
    throw error;
  } finally {
    clearTimeout(late);
  }
}

function literal(value: string, name: string): string {
  return name === 'search_path' ? value : quote(value);
}

/** A text as a literal; every connection is set to take backslashes as they are. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

async function openClient(host: PostgresTarget['hosts'][number], target: PostgresTarget): Promise<pg.Client> {
  const { default: driver } = await import('pg');
  const ssl = host.host.includes('/') ? false : tlsFor(host.host, target);
  try {
    return await open(driver, host, target, ssl);
  } catch (error) {
    const isWithoutTls = /does not support SSL/.test(messageOf(error));
    if (target.sslMode !== 'prefer' || !isWithoutTls) throw postgresError(error);
    return await open(driver, host, target, false).catch((reason: unknown) => {
      throw postgresError(reason);
    });
  }
}

async function open(
  driver: typeof pg,
  { host, port }: PostgresTarget['hosts'][number],
  target: PostgresTarget,
  ssl: ConnectionOptions | false,
): Promise<pg.Client> {
  const client = new driver.Client({
    host,
    port,
    user: target.user,
    password: target.password,
    database: target.database,
    ssl,
    application_name: 'andromeda',
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    connectionTimeoutMillis: connectMs,
    types: { getTypeParser: parserOf as typeof driver.types.getTypeParser },
  });
  // Until somebody else listens; what fails is what `connect` throws.
  const ignore = () => {};
  client.on('error', ignore);
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.end().catch(ignore);
    throw error;
  }
}

/** Whole numbers as JavaScript has them, `count` and `sum` among them; true and false; texts. */
function parserOf(oid: number): (text: string) => unknown {
  if (numbers.has(oid)) return Number;
  return oid === 16 ? (text) => text === 't' : (text) => text;
}

/** `int8`, `int2`, `int4`, `oid`, `float4`, `float8` and `numeric`, as `pg_type` numbers them. */
const numbers = new Set([20, 21, 23, 26, 700, 701, 1700]);

/** https://www.postgresql.org/docs/current/libpq-ssl.html */
function tlsFor(host: string, { sslMode, sslRootCert }: PostgresTarget): ConnectionOptions | false {
  if (sslMode === 'disable') return false;
  const ca = authorities(sslRootCert);
  const unchecked = { rejectUnauthorized: false };
  if (sslMode === 'prefer') return unchecked;
  // With authorities at hand, libpq asks of `require` what it asks of `verify-ca`.
  if (sslMode === 'require' && ca === undefined) return unchecked;
  const isFull = sslMode === 'verify-full';
  return {
    ...(ca !== undefined && { ca }),
    ...(isIP(host) === 0 && { servername: host }),
    checkServerIdentity: (_name, certificate) =>
      isFull ? checkServerIdentity(host, certificate) : undefined,
  };
}

/** What certificates must be of; undefined: those that everybody trusts. Throws where the file cannot be read. */
export function authorities(file: string | undefined): string | undefined {
  if (file === 'system') return undefined;
  const usual = join(homedir(), '.postgresql', 'root.crt');
  if (file !== undefined) return readFileSync(file, 'utf8');
  return existsSync(usual) ? readFileSync(usual, 'utf8') : undefined;
}

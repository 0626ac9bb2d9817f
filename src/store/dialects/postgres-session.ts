/** One connection to PostgreSQL: its statements, prepared once, and its end, which every error of the way to it is. */
import type pg from 'pg';
import { withoutNuls } from '../../domain/nul.ts';
import { PostgresError, postgresError } from './postgres-fault.ts';

export interface Result {
  rows: unknown[];
  rowCount: number | null;
  command: string;
}

export interface Session {
  readonly isOpen: boolean;
  /** Runs one statement, prepared at its first use. NUL, for which PostgreSQL refuses a statement, is U+FFFD in it. */
  query(sql: string, parameters?: readonly unknown[]): Promise<Result>;
  /** Runs statements without parameters, at once; what each of them came to. */
  script(sql: string): Promise<Result[]>;
  /** Ends it, and fails what runs, where nothing was heard of the server for so long. */
  endIfSilent(ms: number): void;
  /** Fails what runs. */
  destroy(): void;
  close(): Promise<void>;
}

/** The only row of the last of several statements. */
export function lastRow<Row>(results: readonly Result[]): Row | undefined {
  return results.at(-1)?.rows[0] as Row | undefined;
}

export interface Warning {
  message: string;
  /** Where in PostgreSQL it comes from. */
  routine: string | undefined;
}

export interface SessionEvents {
  onNotification?(payload: string): void;
  onWarning?(warning: Warning): void;
  onEnd?(): void;
}

/** How long an answer is waited for where nothing else is said: a host that is gone sends nothing, and says nothing of it. */
const silentMs = 30_000;
const betweenChecksMs = 5_000;
/** A host that is gone does not say that it has heard of the end. */
const closeMs = 1_000;

/** Names of statements, the same on each connection. Their texts are bounded by the code; IN lists of many lengths are not. */
const names = new Map<string, string>();
const mostNames = 1000;

function nameOf(sql: string): string | undefined {
  const known = names.get(sql);
  if (known !== undefined) return known;
  if (names.size >= mostNames) return undefined;
  const name = `s${names.size}`;
  names.set(sql, name);
  return name;
}

/** Takes over a client that is connected. `patient`: nothing is too long for it. */
export function createSession(
  client: pg.Client,
  { events = {}, patient = false }: { events?: SessionEvents; patient?: boolean },
): Session {
  let isOpen = true;
  let waiting = 0;
  let since = performance.now();
  let last = Promise.resolve();
  const checks = setInterval(() => {
    if (!patient && waiting > 0) session.endIfSilent(silentMs);
  }, betweenChecksMs).unref();

  function end(): void {
    if (!isOpen) return;
    isOpen = false;
    clearInterval(checks);
    events.onEnd?.();
  }

  // What fails between two queries is found by the next one.
  client.on('error', end);
  client.on('end', end);
  client.on('notification', ({ payload }) => events.onNotification?.(payload ?? ''));
  client.on('notice', ({ message = '', routine }) => events.onWarning?.({ message, routine }));

  /** One after the other, as the server does them. */
  async function answered<T>(run: () => Promise<T>): Promise<T> {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    if (waiting === 0) since = performance.now();
    waiting += 1;
    try {
      if (waiting > 1) await before;
      if (!isOpen) throw new PostgresError('the connection has ended', { isLost: true });
      return await run();
    } catch (error) {
      const ours = postgresError(error);
      if (ours.isLost) session.destroy();
      throw ours;
    } finally {
      waiting -= 1;
      since = performance.now();
      resolve();
    }
  }

  const session: Session = {
    get isOpen() {
      return isOpen;
    },
    query: (sql, parameters = []) =>
      answered(() => {
        const name = nameOf(sql);
        const values = withoutNuls(parameters) as unknown[];
        return client.query(name === undefined ? { text: sql, values } : { name, text: sql, values });
      }),
    script: (sql) =>
      answered(async () => {
        const results: unknown = await client.query(sql);
        return (Array.isArray(results) ? results : [results]) as Result[];
      }),
    endIfSilent(ms) {
      if (performance.now() - since >= ms) session.destroy();
    },
    destroy() {
      end();
      // Its `end` would wait for what runs.
      cut(client);
    },
    async close() {
      if (!isOpen) return;
      end();
      const late = setTimeout(() => cut(client), closeMs);
      await client.end().catch(() => {});
      clearTimeout(late);
    },
  };
  return session;
}

function cut(client: pg.Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/** A PostgreSQL of a test run's own: on a Unix socket, with nothing flushed to the disk. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

/** Where Debian keeps the programs of the newest version; undefined where there is none. */
export function postgresPrograms(): string | undefined {
  const versions = globSync('/usr/lib/postgresql/*/bin');
  const [newest] = versions.sort((a, b) => Number(b.split('/')[4]) - Number(a.split('/')[4]));
  return newest !== undefined && existsSync(join(newest, 'initdb')) ? newest : undefined;
}

/** Why tests that need one are skipped; undefined where they are not. */
export function missingPostgres(): string | undefined {
  return postgresPrograms() ? undefined : 'PostgreSQL is not installed (Debian: apt-get install postgresql)';
}

export interface TestPostgres extends AsyncDisposable {
  /** The directory of its socket. */
  directory: string;
  port: number;
  /** `options`: more of them, as `?a=b&c=d`. */
  url(options?: Record<string, string>): string;
  readonly pid: number | undefined;
  start(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  query<Row = Record<string, unknown>>(sql: string, values?: unknown[]): Promise<Row[]>;
}

const database = 'andromeda';
const usualPort = 5432;
const settings = [
  ['fsync', 'off'],
  ['full_page_writes', 'off'],
  ['synchronous_commit', 'off'],
  ['autovacuum', 'off'],
  ['jit', 'off'],
  ['wal_level', 'minimal'],
  ['max_wal_senders', '0'],
  ['max_connections', '300'],
  ['shared_buffers', '64MB'],
  ['dynamic_shared_memory_type', 'mmap'],
  ['listen_addresses', ''],
  ['log_min_messages', 'fatal'],
  ['max_locks_per_transaction', '1024'],
];

export interface PostgresOptions {
  /** Settings. */
  more?: string[][];
  /** With an identity of its own: the others of a run are copies of one. */
  isAnother?: boolean;
  /** Where it listens on addresses: two of them have not the same. It is in the name of the socket too. */
  port?: number;
  /** What it is a standby of; left out: of nothing, and it has a database. */
  of?: TestPostgres;
}

/** Makes one in a directory of its own below `parent`, and starts it. */
export async function createPostgres(
  parent: string = tmpdir(),
  { more = [], isAnother = false, port = usualPort, of }: PostgresOptions = {},
): Promise<TestPostgres> {
  const programs = postgresPrograms();
  if (!programs) throw new Error(missingPostgres());
  const directory = mkdtempSync(join(parent, 'pg-'));
  const account = accountOf();
  if (account.uid !== undefined) chownSync(directory, account.uid, account.gid ?? 0);
  const data = join(directory, 'data');
  const make = (program: string, options: string[]) =>
    execFileSync(join(programs, program), ['-D', data, '-U', 'postgres', ...options], {
      ...account,
      cwd: directory,
      stdio: 'pipe',
    });
  if (of) make('pg_basebackup', ['-h', of.directory, '-p', `${of.port}`, '-R', '-N', '-c', 'fast']);
  else {
    const kept = isAnother ? undefined : keptBy(process.env['ANDROMEDA_TEST_SHARED']);
    if (kept && existsSync(kept)) copy(kept, data);
    else make('initdb', ['-A', 'trust', '-E', 'UTF8', '--locale=C', '-N', '--no-instructions']);
    if (kept && !existsSync(kept)) keep(data, kept);
  }
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const all = [...settings, ['unix_socket_directories', directory], ['port', `${port}`], ...more];
    const started = spawn(
      join(programs ?? '', 'postgres'),
      ['-D', data, ...all.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      { ...account, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let said = '';
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-4000);
    });
    child = started;
    for (;;) {
      if (started.exitCode !== null) throw new Error(`PostgreSQL did not start: ${said}`);
      try {
        return await ask('postgres', 'select 1').then(() => undefined);
      } catch {
        await wait(20);
      }
    }
  }

  async function stop(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const stopped = child;
    child = undefined;
    if (!stopped || stopped.exitCode !== null || stopped.signalCode !== null) return;
    const exited = new Promise((done) => stopped.once('exit', done));
    stopped.kill('SIGCONT');
    stopped.kill(signal);
    await exited;
  }

  async function ask(name: string, sql: string, values: unknown[] = []): Promise<unknown[]> {
    const client = new pg.Client({ host: directory, port, user: 'postgres', database: name });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  await start();
  if (!of) await ask('postgres', `create database ${database}`);
  return {
    directory,
    port,
    get pid() {
      return child?.pid;
    },
    url: (more = {}) =>
      urlOf(directory, database, { ...(port !== usualPort && { host: `${directory}:${port}` }), ...more }),
    start,
    stop,
    query: async <Row>(sql: string, values?: unknown[]) => (await ask(database, sql, values)) as Row[],
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** To make a data directory takes a second of a processor, so that the first one of a run is kept for the others. */
const keptBy = (shared: string | undefined) => shared && join(shared, 'postgres');

const copy = (from: string, to: string) => void execFileSync('cp', ['-a', from, to]);

function keep(data: string, kept: string): void {
  const own = `${kept}-${process.pid}`;
  copy(data, own);
  try {
    renameSync(own, kept);
  } catch {
    // Another file of the run was first.
    rmSync(own, { recursive: true });
  }
}

/** Signals a PostgreSQL as it is now, and the processes that it has started. */
export function signalsTo({ pid = 0 }: Pick<TestPostgres, 'pid'>): (name: NodeJS.Signals) => void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  const processes = [pid, ...children.split(' ').filter(Boolean).map(Number)];
  return (name) => {
    for (const one of processes) {
      try {
        process.kill(one, name);
      } catch {
        // It has ended.
      }
    }
  };
}

/** Of a database on the socket in a directory. */
export function urlOf(directory: string, name: string, more: Record<string, string> = {}): string {
  return `postgres://postgres@/${name}?${new URLSearchParams({ host: directory, ...more })}`;
}

/** PostgreSQL refuses to run as root. */
function accountOf(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      const number = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
      return { uid: number('-u'), gid: number('-g') };
    } catch {
      // There is no such account.
    }
  }
  throw new Error('nobody else than root is known here, and PostgreSQL does not run as root');
}

/** One PostgreSQL server of the lab, with Debian's programs and docs/scale/postgresql.conf, under an account that is not root. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ports, readExample } from './addresses.ts';

export interface PostgresServer {
  readonly name: string;
  readonly host: string;
  /** Of its first process; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Makes the first one: an empty database. */
  create(): void;
  /** Makes a standby of this one, as a copy of another; what was here is gone. */
  copy(primary: PostgresServer): Promise<void>;
  /** Makes a standby of what was the primary, by going back to where both were one. Rejects where that cannot be. */
  rewind(primary: PostgresServer): Promise<void>;
  start(): Promise<void>;
  /** Ends every process of it, from one moment to the next. */
  kill(): Promise<void>;
  /** Every process of it, the first one first, with what each calls itself. */
  processes(): { pid: number; title: string }[];
  /** The rows' first columns. Rejects where there is no answer within `limitMs`. */
  query(sql: string, options?: { database?: string; limitMs?: number }): Promise<string[]>;
}

const run = promisify(execFile);
const patienceMs = 60_000;
const superuser = 'lab';
export const password = 'of-the-lab';

const programs = '/usr/lib/postgresql/15/bin';

/** Why there is none here, as a clause; undefined where there is. */
export function whyNoPostgres(): string | undefined {
  if (!existsSync(join(programs, 'postgres'))) return 'PostgreSQL 15 is not installed';
  return account() === undefined && process.getuid?.() === 0 ? 'there is no account `postgres`' : undefined;
}

/** What it runs as, where this process is root. */
function account(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync('/etc/passwd', 'utf8').match(/^postgres:[^:]*:(\d+):(\d+):/m);
  return line ? { uid: Number(line[1]), gid: Number(line[2]) } : undefined;
}

/** `folder`: an empty one, whose parents others may pass. */
export function createPostgres(name: string, host: string, folder: string): PostgresServer {
  const owner = account();
  const data = join(folder, 'data');
  const log = join(folder, 'log');
  const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', PGPASSWORD: password, PGCONNECT_TIMEOUT: '3' };
  let child: ChildProcess | undefined;
  if (owner) chownSync(folder, owner.uid, owner.gid);

  const as = { ...owner, env, cwd: folder };
  const program = (file: string, ...args: string[]) =>
    execFileSync(join(programs, file), args, {
      ...as,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: patienceMs,
    });
  const source = (primary: PostgresServer) =>
    `host=${primary.host} port=${ports.database} user=${superuser} password=${password} application_name=${name}`;

  function write(file: string, text: string): void {
    writeFileSync(join(data, file), text, { mode: 0o600 });
    if (owner) chownSync(join(data, file), owner.uid, owner.gid);
  }

  const server: PostgresServer = {
    name,
    host,
    get pid() {
      return child?.pid;
    },
    create() {
      const passwordFile = join(folder, 'password');
      writeFileSync(passwordFile, password, { mode: 0o644 });
      program(
        'initdb',
        '-D',
        data,
        '-U',
        superuser,
        '--pwfile',
        passwordFile,
        '-A',
        'scram-sha-256',
        '--locale=C',
        '-E',
        'UTF8',
      );
      write('scale.conf', readExample('postgresql.conf'));
      write(
        'postgresql.conf',
        `${readFileSync(join(data, 'postgresql.conf'), 'utf8')}\ninclude 'scale.conf'\n`,
      );
      write(
        'pg_hba.conf',
        'host all all 127.0.0.0/8 scram-sha-256\nhost replication all 127.0.0.0/8 scram-sha-256\n',
      );
    },
    async copy(primary) {
      rmSync(data, { recursive: true, force: true });
      mkdirSync(data, { mode: 0o700 });
      if (owner) chownSync(data, owner.uid, owner.gid);
      const args = ['-D', data, '-d', source(primary), '-R', '-X', 'stream', '-c', 'fast'];
      await run(join(programs, 'pg_basebackup'), args, { ...as, timeout: patienceMs });
    },
    async rewind(primary) {
      const args = ['--target-pgdata', data, '--source-server', `${source(primary)} dbname=postgres`, '-R'];
      await run(join(programs, 'pg_rewind'), args, { ...as, timeout: patienceMs });
    },
    async start() {
      rmSync(join(data, 'postmaster.pid'), { force: true });
      const settings = { listen_addresses: host, port: ports.database, unix_socket_directories: '' };
      const options = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
      // A log that its own account can write; of the size of a campaign.
      const command = `exec ${programs}/postgres "$@" >>"$LOG" 2>&1`;
      const started = spawn('sh', ['-c', command, 'postgres', '-D', data, ...options], {
        ...as,
        env: { ...env, LOG: log },
        stdio: 'ignore',
        detached: true,
      });
      child = started;
      started.once('exit', () => {
        if (child === started) child = undefined;
      });
      const until = performance.now() + patienceMs;
      while (
        await server.query('select 1').then(
          () => false,
          () => true,
        )
      ) {
        if (child === undefined || performance.now() > until)
          throw new Error(`PostgreSQL did not start: ${readFileSync(log, 'utf8').slice(-1_000)}`);
        await sleep(100);
      }
    },
    async kill() {
      const ended = child;
      // Again while there are any: one may have come to be meanwhile.
      for (let all = server.processes(); all.length > 0; all = server.processes()) {
        for (const { pid } of all) signal(pid, 'SIGKILL');
        await sleep(20);
      }
      if (ended && ended.exitCode === null && ended.signalCode === null)
        await new Promise((done) => ended.once('exit', done));
    },
    processes() {
      const first = child?.pid;
      return processesIn(data)
        .sort((one, other) => Number(other === first) - Number(one === first))
        .map((pid) => ({ pid, title: titleOf(pid) }));
    },
    async query(sql, { database = 'postgres', limitMs = 3_000 } = {}) {
      const args = [
        '-h',
        host,
        '-p',
        `${ports.database}`,
        '-U',
        superuser,
        '-XAtq',
        '-v',
        'ON_ERROR_STOP=1',
        '-c',
        sql,
      ];
      const { stdout } = await run(join(programs, 'psql'), [...args, database], {
        ...as,
        timeout: limitMs,
        killSignal: 'SIGKILL',
        maxBuffer: 1024 ** 3,
      });
      return stdout.split('\n').filter((line) => line !== '');
    },
  };
  return server;
}

/** Where programs of libpq and the service connect: both, in their order. */
export function urlOf(hosts: readonly string[], database: string): string {
  return `postgres://${superuser}:${password}@${hosts.map((host) => `${host}:${ports.database}`).join(',')}/${database}?sslmode=disable`;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

/** Those that work in a directory, as PostgreSQL's do in that of their data. */
function processesIn(directory: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && directoryOf(pid) === directory);
}

function directoryOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Starts gateway processes: as children that outlive the service, with as few rights as possible, and with retries. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { openSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join, relative } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import { codeRoot, gatewayArguments, inheritedEnvironment, programFile } from '../../lib/packaging.ts';
import { type Account, withoutPrivileges } from './privileges.ts';

/** Identifies a build of the program: by the program's file, as it was when this process started. */
export const ownBuild: string = buildOf(programFile);

/** The paths by which a gateway process finds the program: directories of its code and of its executable. */
interface ProgramPaths {
  codeDir: string;
  execDir: string;
  /** File descriptors of both directories, which processes inherit as 5 and 6 where the paths lead through them. */
  descriptors: readonly number[];
}

const ownWay: ProgramPaths = { codeDir: codeRoot, execDir: dirname(process.execPath), descriptors: [] };

/**
 * The paths by which `account` can read the program: through descriptors where a directory above it, such as /root,
 * is closed to others. Throws `invalid_request` where the account may not read the program itself.
 */
export function findWay(account: Account | undefined): ProgramPaths {
  if (!account || canRead(account, ownWay)) return ownWay;
  const way: ProgramPaths = {
    codeDir: '/proc/self/fd/5',
    execDir: '/proc/self/fd/6',
    descriptors: [openSync(codeRoot, 'r'), openSync(ownWay.execDir, 'r')],
  };
  if (canRead(account, way)) return way;
  throw new DomainError(
    'invalid_request',
    `The SSH gateway runs as ${account.name}, which may not read the program in ${codeRoot} or ${process.execPath}. Install it again under umask 022, so that everyone may.`,
  );
}

function canRead(account: Account, way: ProgramPaths): boolean {
  const files = [executable(way), join(way.codeDir, relative(codeRoot, programFile))];
  const test = ['/bin/sh', '-c', 'test -x "$1" && test -r "$2"', 'sh', ...files];
  const [program = '', ...args] = withoutPrivileges(test, account, 0);
  return spawnSync(program, args, { stdio: [...nothing, ...way.descriptors], cwd: '/' }).status === 0;
}

const nothing = Array<'ignore'>(5).fill('ignore');
const executable = ({ execDir }: ProgramPaths) => join(execDir, basename(process.execPath));

export function gatewayCommand(build: string, way: ProgramPaths): string[] {
  return [executable(way), ...gatewayArguments(way.codeDir), build];
}

/** Starts the process that is to bind the address, as a child. `directory`: descriptor of the directory with the service's socket. */
export function launch(options: {
  build: string;
  directory: number;
  account: Account | undefined;
  way: ProgramPaths;
  port: number;
}): ChildProcess {
  const { build, directory, account, way, port } = options;
  const [program = '', ...args] = withoutPrivileges(gatewayCommand(build, way), account, port);
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...inheritedEnvironment() };
  // The child does not inherit the service's output: readers of that would get no end of file while the child lives.
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'ignore', 'pipe', directory];
  if (way.descriptors.length > 0) stdio.push('ignore', ...way.descriptors);
  const child = spawn(program, args, { stdio, detached: true, cwd: '/', env });
  // Lets the service's event loop end without the child.
  child.unref();
  (child.stderr as unknown as Socket | null)?.unref();
  return child;
}

function buildOf(file: string): string {
  const { dev, ino, size, mtimeMs } = statSync(file);
  return [dev, ino, size, Math.round(mtimeMs)].join('-');
}

const longestRetryMs = 30_000;
/** A process that served for this long did not fail to start. */
const stableMs = 10_000;

/** Retry state of starting gateway processes: recent failures, the last reason, and the time of the next attempt. */
export class Attempts {
  /** The last failure; undefined when nothing went wrong since a process listened. */
  fault: string | undefined;
  #failures = 0;
  #retryAt = 0;

  get isDue(): boolean {
    return performance.now() >= this.#retryAt;
  }

  /** A process did not start, or ended after it had served for `servedMs`. One that served well is replaced without delay. */
  failed(error: unknown, servedMs = 0): { failures: number; retryMs: number } {
    this.fault = messageOf(error);
    this.#failures = servedMs > stableMs ? 0 : this.#failures + 1;
    const failures = this.#failures;
    const retryMs = failures === 0 ? 0 : retryDelay(failures, Math.random(), longestRetryMs);
    this.#retryAt = performance.now() + retryMs;
    return { failures, retryMs };
  }
}

/**
 * Path of the launcher's socket; undefined where the service starts its processes by itself. For gateway processes
 * with another account than the service's, which may start none of other accounts: under the packaged units
 * (src/service/host/unit/service-unit.ts) systemd listens on a socket that only the service can open, and starts
 * `andromeda-gateway` on request. Requests: `start BUILD`, answered by the PID and then the process's stderr; `TERM
 * PID`; `KILL PID`.
 */
export const launcher: string | undefined = process.env['ANDROMEDA_GATEWAY_LAUNCHER'] || undefined;

interface StartedProcess {
  pid: number;
  stderr: Socket;
}

/** Starts the process that is to bind the address. Rejects with a readable message after `limitMs`, or where systemd starts none. */
export function startByLauncher(path: string, build: string, limitMs: number): Promise<StartedProcess> {
  return new Promise((resolve, reject) => {
    let text = '';
    let fault = 'it was ended';
    // Lets the service's event loop end without this connection.
    const stderr = connect(path, () => stderr.write(`start ${build}\n`)).unref();
    const late = setTimeout(
      () => stderr.destroy(new Error(`no answer within ${limitMs} ms`)),
      limitMs,
    ).unref();
    stderr.setEncoding('utf8').on('error', ({ message }) => {
      fault = message;
    });
    stderr.once('close', () => {
      clearTimeout(late);
      const why = `systemd started no gateway process by ${path}: ${text.trim() || fault}`;
      reject(new Error(`${why}. \`journalctl -u 'andromeda-gateway*'\` says more.`));
    });
    stderr.on('data', function first(part: string) {
      text = `${text}${part}`.slice(0, 4_000);
      const [line, pid] = /^(\d+)\n/.exec(text) ?? [];
      if (line === undefined) return;
      clearTimeout(late);
      stderr.off('data', first);
      resolve({ pid: Number(pid), stderr });
      if (text.length > line.length) stderr.unshift(text.slice(line.length));
    });
  });
}

export function endByLauncher(path: string, pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  const socket = connect(path, () => socket.end(`${signal.slice(3)} ${pid}\n`)).unref();
  // Without the launcher, the process ends when its run directory is removed.
  socket.on('error', () => {}).resume();
}

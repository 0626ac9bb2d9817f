/** How a gateway process is started: as a child with its own lifetime, with as few rights as can be, and again when that failed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { openSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join, relative } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import { codeRoot, gatewayArguments, inheritedEnvironment, programFile } from '../../lib/packaging.ts';
import { type Account, withoutPrivileges } from './privileges.ts';

/** What tells one build of the program from another: the file of the program, as it was when this process started. */
export const ownBuild: string = buildOf(programFile);

/** Where a gateway process finds the program: the directories of its code and of its executable. */
interface Way {
  codeDir: string;
  execDir: string;
  /** Both, open, for processes to inherit as 5 and 6, where the paths lead through them. */
  descriptors: readonly number[];
}

const ownWay: Way = { codeDir: codeRoot, execDir: dirname(process.execPath), descriptors: [] };

/**
 * The way on which `account` can read the program: by descriptors where a directory above it is closed to others, as /root
 * is. Throws `invalid_request` where it is the program itself that is closed to them.
 */
export function findWay(account: Account | undefined): Way {
  if (!account || canRead(account, ownWay)) return ownWay;
  const way: Way = {
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

function canRead(account: Account, way: Way): boolean {
  const files = [executable(way), join(way.codeDir, relative(codeRoot, programFile))];
  const test = ['/bin/sh', '-c', 'test -x "$1" && test -r "$2"', 'sh', ...files];
  const [program = '', ...args] = withoutPrivileges(test, account, 0);
  return spawnSync(program, args, { stdio: [...nothing, ...way.descriptors], cwd: '/' }).status === 0;
}

const nothing = Array<'ignore'>(5).fill('ignore');
const executable = ({ execDir }: Way) => join(execDir, basename(process.execPath));

export function gatewayCommand(build: string, way: Way): string[] {
  return [executable(way), ...gatewayArguments(way.codeDir), build];
}

/** Starts the process that is to bind the address, as a child. `directory`: the descriptor that leads to the service's socket. */
export function launch(options: {
  build: string;
  directory: number;
  account: Account | undefined;
  way: Way;
  port: number;
}): ChildProcess {
  const { build, directory, account, way, port } = options;
  const [program = '', ...args] = withoutPrivileges(gatewayCommand(build, way), account, port);
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...inheritedEnvironment() };
  // It does not inherit the service's output: its readers would get no end of file while this process lives.
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'ignore', 'pipe', directory];
  if (way.descriptors.length > 0) stdio.push('ignore', ...way.descriptors);
  const child = spawn(program, args, { stdio, detached: true, cwd: '/', env });
  // The service ends without waiting for it.
  child.unref();
  (child.stderr as unknown as Socket | null)?.unref();
  return child;
}

function buildOf(file: string): string {
  const { dev, ino, size, mtimeMs } = statSync(file);
  return [dev, ino, size, Math.round(mtimeMs)].join('-');
}

const longestRetryMs = 30_000;
/** One that served for so long did not fail to start. */
const stableMs = 10_000;

/** How often a gateway process failed to start of late, why, and when it is tried again. */
export class Attempts {
  /** Why there is none; undefined when nothing went wrong since one listened. */
  fault: string | undefined;
  #failures = 0;
  #retryAt = 0;

  get isDue(): boolean {
    return performance.now() >= this.#retryAt;
  }

  /** One could not be had, or ended when it had served for `servedMs`. One that served well is replaced at once. */
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
 * Where gateway processes have another account than the service's, which may start none of other accounts: under the packaged units
 * (src/service/host/unit/service-unit.ts) systemd listens on a socket that only the service can open, and runs what is asked for there as
 * `andromeda-gateway`. A line each: `start BUILD`, answered by the number of the process and then what that writes on stderr;
 * `TERM PID` or `KILL PID`. This is the path of the socket; undefined where the service starts its processes by itself.
 */
export const launcher: string | undefined = process.env['ANDROMEDA_GATEWAY_LAUNCHER'] || undefined;

interface Started {
  pid: number;
  stderr: Socket;
}

/** Starts the process that is to bind the address. Fails in words after `limitMs`, or where systemd starts none. */
export function startByLauncher(path: string, build: string, limitMs: number): Promise<Started> {
  return new Promise((resolve, reject) => {
    let text = '';
    let fault = 'it was ended';
    // The service ends without waiting for it.
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
  // Then it ends with the run directory.
  socket.on('error', () => {}).resume();
}

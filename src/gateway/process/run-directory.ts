/**
 * The run directory, systemd's where it makes one, else `run` in the data directory. It has the service's socket, and
 * the list of gateway processes for a service that starts after a crash. PIDs are reused, so each is listed with its
 * start time.
 */
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { isAbsolute, join } from 'node:path';
import { readProcess } from '../../lib/host-ids.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { launcher } from './launch.ts';
import { list, number, shape, text } from './shape.ts';

export interface Living {
  pid: number;
  /** The `starttime` field of /proc/PID/stat. */
  startTime: string;
}

export interface RunDirectory {
  socket: string;
  /** File descriptor of the directory, for processes to inherit: it leads to the socket whatever the path above. */
  descriptor: number;
  /**
   * Writes the list of processes where it changed. Only the next start needs it, so a failure, as on a full disk, is
   * reported once and the next call tries again.
   */
  remember(processes: readonly Living[]): void;
}

/** `directory`: identifies this one, as a copy of the data directory must not adopt the processes of the original. */
const isList = shape({
  directory: text(100),
  processes: list(shape({ pid: number, startTime: text(40) }), 1000),
});

/** Creates the directory where it is missing. `others`: processes of another account need access. Returns the processes that still live. */
export function openRunDirectory(
  dataDir: string,
  others: boolean,
  onFault: (error: unknown) => void,
): RunDirectory & { living: Living[] } {
  const path = runDirectoryOf(dataDir);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, others ? 0o711 : 0o700);
  const file = join(path, 'gateways.json');
  const reached = launcher === undefined ? path : makeReached(path);
  const socket = join(reached, 'gateway.sock');
  const { dev, ino } = statSync(path);
  const directory = `${dev}:${ino}`;
  const living = read(file, directory).filter((one) => startTimeOf(one.pid) === one.startTime);
  rmSync(socket, { force: true });
  let written: string | undefined;
  let isFailing = false;
  return {
    living,
    socket,
    descriptor: openSync(reached, 'r'),
    remember(processes) {
      const content = JSON.stringify({ directory, processes });
      if (content === written) return;
      try {
        writeWhole(file, content);
        written = content;
        isFailing = false;
      } catch (error) {
        if (!isFailing) onFault(error);
        isFailing = true;
      }
    },
  };
}

/** The subdirectory that the unit of gateway processes mounts for them: its parent is closed to all but the service. */
function makeReached(path: string): string {
  const reached = join(path, 'gateway');
  mkdirSync(reached, { recursive: true });
  chmodSync(reached, 0o755);
  return reached;
}

/** systemd removes its run directory when the unit stops, which ends the processes that were left behind. */
function runDirectoryOf(dataDir: string): string {
  const [given] = process.env['RUNTIME_DIRECTORY']?.split(':') ?? [];
  return given !== undefined && isAbsolute(given) && existsSync(given) ? given : join(dataDir, 'run');
}

function read(file: string, directory: string): Living[] {
  try {
    const found = JSON.parse(readFileSync(file, 'utf8'));
    return isList(found) && found.directory === directory ? found.processes : [];
  } catch {
    // A missing or truncated list: no process is known.
    return [];
  }
}

/**
 * Only this account may connect or, where systemd starts the processes, those that have the directory mounted. The
 * path goes through the descriptor, as a socket's path has at most 107 bytes.
 */
export async function listen(
  directory: RunDirectory,
  onConnection: (socket: Socket) => void,
): Promise<Server> {
  const server = createServer(onConnection);
  const mask = process.umask(launcher === undefined ? 0o177 : 0o111);
  try {
    server.listen(`/proc/self/fd/${directory.descriptor}/gateway.sock`);
    await once(server, 'listening');
  } finally {
    process.umask(mask);
  }
  return server.unref();
}

/** Start time of a process, or "hidden"; undefined where there is none, or only a zombie. */
export function startTimeOf(pid: number): string | undefined {
  const stat = readProcess(pid, 'stat');
  if (stat === '') return isOfAnother(pid) ? 'hidden' : undefined;
  // The command name in front of the fields may itself contain spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

/** True for a process of another account, which this one may neither end nor, under `ProtectProc=invisible`, see. */
export function isOfAnother(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** True if a process runs the gateway: no other is ever killed, whatever the list says. */
export function isGatewayProcess(pid: number): boolean {
  return readProcess(pid, 'cmdline').split('\0').includes('gateway');
}

/** Sessions that stay open by way of HAProxy, each asked every second whether it is still there. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Person } from './person.ts';
import { signal } from './postgres.ts';
import type { Server } from './servers.ts';

export interface Session {
  /** Where its gateway is. */
  readonly server: Server;
  readonly isOpen: boolean;
  /** When it answered last. */
  readonly answeredAt: number;
  /** What ssh said at the end. */
  readonly said: string;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  end(): void;
}

export interface Sessions {
  readonly all: readonly Session[];
  /** Opens one in the place of each that has ended; resolves when all answer. */
  refill(): Promise<void>;
  stop(): Promise<void>;
}

const askMs = 1_000;
const openMs = 60_000;

/** A session of a person, by way of HAProxy or at one server. Rejects where it does not open. */
export async function openSession(
  person: Person,
  servers: readonly Server[],
  host?: string,
): Promise<Session> {
  const until = performance.now() + openMs;
  for (;;) {
    const opened = await tryToOpen(person, servers, host);
    if (typeof opened !== 'string') return opened;
    if (performance.now() > until) throw new Error(`a session did not open: ${opened}`);
    await sleep(500);
  }
}

async function tryToOpen(
  person: Person,
  servers: readonly Server[],
  host: string | undefined,
): Promise<Session | string> {
  // By its address on the login node we know which process the connection is of.
  const command = 'echo "from $SSH_CONNECTION"; exec cat';
  const child = spawn('ssh', [...person.to(host), command], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => {});
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    said = `${said}${part}`.slice(-500);
  });
  let isOpen = true;
  const ended = new Promise<void>((done) => child.once('close', () => done())).then(() => {
    isOpen = false;
    clearInterval(asking);
  });
  const first = await firstLine(child);
  const asking = setInterval(() => child.stdin.writable && child.stdin.write('still here\n'), askMs);
  let answeredAt = performance.now();
  child.stdout.on('data', () => {
    answeredAt = performance.now();
  });
  const server = first === undefined ? undefined : serverOf(first, servers);
  if (!server) {
    child.kill('SIGKILL');
    await ended;
    return `${first ?? 'nothing'}; ${said.trim()}`;
  }
  return {
    server,
    ended,
    get isOpen() {
      return isOpen;
    },
    get answeredAt() {
      return answeredAt;
    },
    get said() {
      return said.trim();
    },
    end: () => child.pid !== undefined && signal(child.pid, 'SIGKILL'),
  };
}

function firstLine(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => child.kill('SIGKILL'), 30_000);
    let text = '';
    child.stdout?.on('data', (data: Buffer) => {
      text += data;
      if (text.includes('\n')) resolve(text);
    });
    child.once('close', () => resolve(undefined));
    child.once('close', () => clearTimeout(limit));
    child.stdout?.once('data', () => clearTimeout(limit));
  });
}

/** The server whose gateway has the connection with this port of ours. */
function serverOf(line: string, servers: readonly Server[]): Server | undefined {
  const port = Number(/^from \S+ (\d+) /.exec(line)?.[1]);
  const inode = inodeOf(port);
  return servers.find((server) => server.gateways.some((pid) => has(pid, `socket:[${inode}]`)));
}

/** Of the TCP socket with this local port that is connected. */
function inodeOf(port: number): string | undefined {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, , state]) => local?.endsWith(hex) && state === '01')?.[9];
}

function has(pid: number, target: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === target;
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

/** One for each of these people, all open. */
export async function startSessions(
  people: readonly Person[],
  servers: readonly Server[],
): Promise<Sessions> {
  let all: Session[] = [];
  let isStopped = false;
  const sessions: Sessions = {
    get all() {
      return all;
    },
    async refill() {
      all = await Promise.all(
        people.map((person, index) => {
          const present = all[index];
          return present?.isOpen || isStopped ? (present as Session) : openSession(person, servers);
        }),
      );
    },
    async stop() {
      isStopped = true;
      for (const session of all) session.end();
      await Promise.all(all.map((session) => session.ended));
    },
  };
  await sessions.refill();
  return sessions;
}

/**
 * The embedded login node of a simulated Slurm cluster: an SSH server on loopback in a child process of its
 * own, to which only the gateway's key opens the accounts.
 *
 * It owns: the login node's host key, homes and processes below `dataDir`; sessions, terminals, sftp and local
 * forwarding. It must not: decide who has access (the caller sets the accounts), listen beyond loopback, run a
 * session as root, or outlive the server.
 *
 * The flow: this file, with the first connection where it is on demand (`on-demand.ts`), starts `main.ts serve` → `serve.ts` prepares homes (`homes.ts`) and the place where
 * sessions run (`place.ts`) → `server.ts` lets the gateway in (ssh2 does transport and authentication,
 * `transport.ts`) → `connection.ts` and `channel.ts` speak the connection protocol → `session.ts` turns
 * requests into a program (`command.ts`) and runs it (`running.ts`, `running-pty.ts`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Logger } from '../../../../lib/log.ts';
import { inheritedEnvironment } from '../../../../lib/packaging.ts';
import { roomProcess } from './entry.ts';
import type { Account, FromLoginNode, Settings, ToLoginNode } from './messages.ts';
import { endProcesses } from './processes.ts';

export type { Account } from './messages.ts';

export interface LoginNodeOptions {
  dataDir: string;
  /** The gateway's public key, "ssh-ed25519 AAAA…": the only key that opens accounts. */
  authorizedKey: string;
  accounts: readonly Account[];
  log: Logger;
  /** `own`: use the built-in sftp server even where the system has one. */
  sftp?: 'system' | 'own';
  /** False: do without a mount namespace, even where one is possible. */
  namespace?: boolean;
  /** Where somebody else takes the connections, which then come with `adopt`; left out: a port of its own. */
  port?: number;
}

export interface LoginNode {
  readonly host: '127.0.0.1';
  readonly port: number;
  /** "ssh-ed25519 AAAA…" */
  readonly hostKey: string;
  /** False once the process has ended, for whatever reason. */
  readonly running: boolean;
  /** The process of the login node, for those who watch it. */
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  /** Replaces the accounts; the sessions of removed ones have ended when this resolves. */
  setAccounts(accounts: readonly Account[]): Promise<void>;
  /** Hands over a connection from which nothing has been read. */
  adopt(socket: Socket): void;
  stop(): Promise<void>;
}

const startLimit = 15_000;
const stopLimit = 5_000;

/** Starts a login node and waits until it answers. Rejects with a sentence for the operator. */
export async function startLoginNode(options: LoginNodeOptions): Promise<LoginNode> {
  const { log } = options;
  const { file, args } = roomProcess('serve');
  const child = spawn(file, args, {
    // Its own session: Ctrl-C in the server's terminal must reach the server only.
    detached: true,
    env: { PATH: process.env['PATH'] ?? '', ...inheritedEnvironment() },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let { port } = options;
  let running = true;
  let stopping = false;
  let nextId = 0;
  const waiting = new Map<number, (error: string | undefined) => void>();

  const exited = new Promise<void>((resolve) => {
    const over = (code: number | null, signal: string | null) => {
      if (!running) return;
      running = false;
      if (!stopping)
        log.error('login_node_exited', { pid: child.pid, code, signal, dataDir: options.dataDir });
      for (const answer of waiting.values()) answer('The login node has ended.');
      waiting.clear();
      if (code === 0 || port === undefined) resolve();
      else endLeftBehind(port).then(resolve);
    };
    child.once('exit', over);
    child.on('error', (error) => {
      log.error('login_node_process_error', { error });
      if (child.pid === undefined) over(null, null);
    });
  });
  child.stderr?.on('data', (text: Buffer) =>
    log.error('login_node_stderr', { text: text.toString().trim() }),
  );

  const ready = new Promise<{ port: number; hostKey: string }>((resolve, reject) => {
    child.on('message', (message: FromLoginNode) => {
      switch (message.type) {
        case 'log':
          return log[message.level](message.event, message.fields);
        case 'ready':
          port = message.port;
          return resolve(message);
        case 'failed':
          stopping = true;
          return reject(new Error(message.message));
        case 'accounts': {
          waiting.get(message.id)?.(message.error);
          waiting.delete(message.id);
        }
      }
    });
    exited.then(() => reject(new Error('The login node ended while it was starting; the log says why.')));
    setTimeout(() => reject(new Error('The login node did not start in time.')), startLimit).unref();
  });

  const settings: Settings = {
    dataDir: options.dataDir,
    authorizedKey: options.authorizedKey,
    accounts: options.accounts,
    sftp: options.sftp ?? 'system',
    namespace: options.namespace ?? true,
    port: options.port,
  };
  tell(child, { type: 'start', settings });

  /** It had no time to end its sessions. Its mount namespace is not known here, so their environment tells. */
  async function endLeftBehind(itsPort: number): Promise<void> {
    await endProcesses({ place: { kind: 'root' }, port: itsPort }).catch((error) =>
      log.error('login_node_sessions_left', { error }),
    );
  }

  async function stop(): Promise<void> {
    stopping = true;
    if (!running) return;
    tell(child, { type: 'stop' });
    const timer = setTimeout(() => child.kill('SIGKILL'), stopLimit);
    await exited;
    clearTimeout(timer);
  }

  const { hostKey, port: itsPort } = await ready.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    host: '127.0.0.1',
    port: itsPort,
    hostKey,
    pid: child.pid ?? 0,
    exited,
    get running() {
      return running;
    },
    setAccounts(accounts) {
      if (!running) return Promise.reject(new Error('The login node is not running.'));
      const id = nextId++;
      return new Promise((resolve, reject) => {
        waiting.set(id, (error) => (error === undefined ? resolve() : reject(new Error(error))));
        tell(child, { type: 'accounts', id, accounts });
      });
    },
    adopt(socket) {
      if (!child.connected) socket.destroy();
      else child.send({ type: 'connection' } satisfies ToLoginNode, socket, () => undefined);
    },
    stop,
  };
}

function tell(child: ChildProcess, message: ToLoginNode): void {
  // The process may be about to end; its exit is reported elsewhere.
  if (child.connected) child.send(message, () => undefined);
}

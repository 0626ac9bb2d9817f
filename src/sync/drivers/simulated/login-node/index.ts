/**
 * The login node of a simulated Slurm cluster: an SSH server in a child process of its own, to which only the
 * gateway's key opens the accounts. The server's process listens for it, on loopback.
 *
 * It owns: the login node's host key, homes and processes below `dataDir`; sessions, terminals, sftp and local
 * forwarding. It must not: decide who has access (the caller sets the accounts), listen, run a session as root, or
 * outlive the server.
 *
 * The flow: this file, with the first connection where it is on demand (`on-demand.ts`), starts `main.ts serve` →
 * `serve.ts` prepares homes (`homes.ts`) and the sandbox of sessions (`sandbox.ts`) → `server.ts` and `client.ts`
 * let the gateway in (ssh2 does transport and authentication, `transport.ts`) → `connection.ts` and `channel.ts`
 * implement the connection protocol → `session.ts` turns requests into a program (`command.ts`) and runs it
 * (`running.ts`, `running-pty.ts`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Logger } from '../../../../lib/log.ts';
import { inheritedEnvironment } from '../../../../lib/packaging.ts';
import type { Account, FromLoginNode, Settings, ToLoginNode } from './messages.ts';
import { ownProgram } from './own-program.ts';
import { endProcesses } from './processes.ts';

export type { Account } from './messages.ts';

export interface LoginNodeOptions {
  dataDir: string;
  /** The gateway's public keys, "ssh-ed25519 AAAA…": no other key opens accounts. */
  authorizedKeys: readonly string[];
  accounts: readonly Account[];
  log: Logger;
  /** `own`: use the built-in sftp server even where the system has one. */
  sftp?: 'system' | 'own';
  /** False: do without a mount namespace, even where one is possible. */
  namespace?: boolean;
  /** Where the caller listens; it hands the connections over with `adopt`. */
  port: number;
}

export interface LoginNode {
  /** False once the process has ended, for whatever reason. */
  readonly running: boolean;
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
  const node = new LoginNodeProcess(options);
  try {
    await node.start();
  } catch (error) {
    await node.stop();
    throw error;
  }
  return node;
}

class LoginNodeProcess implements LoginNode {
  readonly exited: Promise<void>;
  readonly #options: LoginNodeOptions;
  readonly #child: ChildProcess;
  /** Changes of accounts that have no answer yet. */
  readonly #waiting = new Map<number, (error: string | undefined) => void>();
  #running = true;
  #stopping = false;
  #nextId = 0;

  constructor(options: LoginNodeOptions) {
    this.#options = options;
    const { file, args } = ownProgram('serve');
    this.#child = spawn(file, args, {
      // Its own session: Ctrl-C in the server's terminal must reach the server only.
      detached: true,
      env: { PATH: process.env['PATH'] ?? '', ...inheritedEnvironment() },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr?.on('data', (text: Buffer) =>
      options.log.error('login_node_stderr', { text: text.toString().trim() }),
    );
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => void this.#ended(code, signal).then(resolve));
      this.#child.on('error', (error) => {
        options.log.error('login_node_process_error', { error });
        if (this.pid === 0) void this.#ended(null, null).then(resolve);
      });
    });
  }

  get running(): boolean {
    return this.#running;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  start(): Promise<void> {
    const { dataDir, authorizedKeys, accounts, port, sftp = 'system', namespace = true } = this.#options;
    const settings: Settings = { dataDir, authorizedKeys, accounts, sftp, namespace, port };
    return new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromLoginNode) => this.#receive(message, resolve, reject));
      this.exited.then(() =>
        reject(new Error('The login node ended while it was starting; the log says why.')),
      );
      setTimeout(() => reject(new Error('The login node did not start in time.')), startLimit).unref();
      this.#send({ type: 'start', settings });
    });
  }

  setAccounts(accounts: readonly Account[]): Promise<void> {
    if (!this.#running) return Promise.reject(new Error('The login node is not running.'));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, (error) => (error === undefined ? resolve() : reject(new Error(error))));
      this.#send({ type: 'accounts', id, accounts });
    });
  }

  adopt(socket: Socket): void {
    if (!this.#child.connected) socket.destroy();
    else this.#child.send({ type: 'connection' } satisfies ToLoginNode, socket, () => undefined);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (!this.#running) return;
    this.#send({ type: 'stop' });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopLimit);
    await this.exited;
    clearTimeout(timer);
  }

  #send(message: ToLoginNode): void {
    // The process may be about to end; its exit is reported elsewhere.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  #receive(message: FromLoginNode, ready: () => void, failed: (error: Error) => void): void {
    switch (message.type) {
      case 'log':
        this.#options.log[message.level](message.event, message.fields);
        return;
      case 'ready':
        ready();
        return;
      case 'failed':
        this.#stopping = true;
        failed(new Error(message.message));
        return;
      case 'accounts':
        this.#waiting.get(message.id)?.(message.error);
        this.#waiting.delete(message.id);
    }
  }

  async #ended(code: number | null, signal: string | null): Promise<void> {
    this.#running = false;
    const { log, dataDir, port } = this.#options;
    if (!this.#stopping) log.error('login_node_exited', { pid: this.#child.pid, code, signal, dataDir });
    for (const answer of this.#waiting.values()) answer('The login node has ended.');
    this.#waiting.clear();
    if (code === 0) return;
    // It had no time to end its sessions. Its mount namespace is not known here, so their environment identifies them.
    await endProcesses({ sandbox: { kind: 'root' }, port }).catch((error) =>
      log.error('login_node_sessions_left', { error }),
    );
  }
}

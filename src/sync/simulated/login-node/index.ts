/**
 * The login node of a simulated Slurm cluster: an SSH server in a child process of its own, to which only the
 * gateway's key opens the accounts. The server's process listens for it, on loopback.
 *
 * It owns: the login node's host key, homes and processes below `dataDir`; sessions, terminals, sftp and local
 * forwarding. It must not: decide who has access (the caller sets the accounts), listen, run a session as root, or
 * outlive the server.
 *
 * The flow: with the first connection (`on-demand.ts`) this file starts `main.ts` in its sandbox (`sandbox.ts`), which prepares
 * homes (`homes.ts`) → `server.ts` and `client.ts` let the gateway in (ssh2 does transport, authentication and channels) →
 * `session.ts` turns requests into a program (`command.ts`) and runs it (`running.ts`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Logger } from '../../../lib/log.ts';
import { inheritedEnvironment } from '../../../lib/packaging.ts';
import { loadSshKey } from '../../../lib/ssh/key-file.ts';
import { prepareDirectories } from './homes.ts';
import type { Account, FromLoginNode, Settings, ToLoginNode } from './messages.ts';
import { endProcesses } from './processes.ts';
import { findObstacle, loginNodeProgram, type Sandbox, systemPath } from './sandbox.ts';

export type { Account } from './messages.ts';

export interface LoginNodeOptions {
  dataDir: string;
  /** The gateway's public keys, "ssh-ed25519 AAAA…": no other key opens accounts. */
  authorizedKeys: readonly string[];
  accounts: readonly Account[];
  log: Logger;
  /** False: do without namespaces, even where they are possible. */
  namespace?: boolean;
  /** Where the caller listens; it hands the connections over with `adopt`. */
  port: number;
}

const startLimit = 15_000;
const stopLimit = 5_000;

/** Starts a login node and waits until it answers. Rejects with a sentence for the operator. */
export async function startLoginNode(options: LoginNodeOptions): Promise<LoginNodeProcess> {
  const node = new LoginNodeProcess(options, await findSandbox(options));
  try {
    await node.start();
  } catch (error) {
    await node.stop();
    throw error;
  }
  return node;
}

async function findSandbox({ namespace = true, log }: LoginNodeOptions): Promise<Sandbox> {
  if (process.getuid?.() !== 0) return 'self';
  if (!namespace) return 'root';
  const reason = await findObstacle();
  if (reason === undefined) return 'namespaces';
  log.warn('login_node_without_namespace', { reason });
  return 'root';
}

/** A login node's process, which takes connections as long as it lives. */
export class LoginNodeProcess {
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  readonly #options: LoginNodeOptions;
  readonly #sandbox: Sandbox;
  readonly #homes: string;
  readonly #child: ChildProcess;
  /** Changes of accounts that have no answer yet. */
  readonly #waiting: ((error: string | undefined) => void)[] = [];
  #running = true;
  #stopping = false;

  constructor(options: LoginNodeOptions, sandbox: Sandbox) {
    this.#options = options;
    this.#sandbox = sandbox;
    this.#homes = prepareDirectories(options.dataDir);
    const { file, args } = loginNodeProgram(sandbox, this.#homes);
    this.#child = spawn(file, args, {
      // Its own session: Ctrl-C in the server's terminal must reach the server only.
      detached: true,
      env: { PATH: systemPath, ...inheritedEnvironment() },
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

  /** False once the process has ended, for whatever reason. */
  get running(): boolean {
    return this.#running;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  start(): Promise<void> {
    const { dataDir, authorizedKeys, accounts, port } = this.#options;
    const sandbox = this.#sandbox;
    const homes = sandbox === 'namespaces' ? '/home' : this.#homes;
    const { privateKey: hostKey } = loadSshKey(join(dataDir, 'host_key'));
    const settings: Settings = { homes, sandbox, hostKey, authorizedKeys, accounts, port };
    return new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromLoginNode) => this.#receive(message, resolve, reject));
      this.exited.then(() =>
        reject(new Error('The login node ended while it was starting; the log says why.')),
      );
      setTimeout(() => reject(new Error('The login node did not start in time.')), startLimit).unref();
      this.#send({ type: 'start', settings });
    });
  }

  /** Replaces the accounts; the sessions of removed ones have ended when this resolves. */
  setAccounts(accounts: readonly Account[]): Promise<void> {
    if (!this.#running) return Promise.reject(new Error('The login node is not running.'));
    return new Promise((resolve, reject) => {
      this.#waiting.push((error) => (error === undefined ? resolve() : reject(new Error(error))));
      this.#send({ type: 'accounts', accounts });
    });
  }

  /** Hands over a connection from which nothing has been read. */
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
    // The process may be about to end; its `exit` event reports that.
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
        // They come in the order of the questions.
        this.#waiting.shift()?.(message.error);
    }
  }

  async #ended(code: number | null, signal: string | null): Promise<void> {
    this.#running = false;
    const { log, dataDir, port } = this.#options;
    if (!this.#stopping) log.error('login_node_exited', { pid: this.#child.pid, code, signal, dataDir });
    for (const answer of this.#waiting.splice(0)) answer('The login node has ended.');
    if (code === 0 || this.#sandbox === 'namespaces') return;
    // It had no time to end its sessions.
    await endProcesses(port).catch((error) => log.error('login_node_sessions_left', { error }));
  }
}

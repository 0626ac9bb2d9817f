/**
 * The login node of a simulated Slurm cluster: an SSH server in a child process that accepts only the gateway's key. The
 * parent process listens for it, on loopback.
 *
 * It owns: the login node's host key, homes and processes below `dataDir`; sessions, terminals, sftp and local
 * forwarding. It must not: decide who has access (the caller sets the accounts), listen, run a session as root, or
 * outlive the server.
 *
 * The flow: at the first connection this file starts `main.ts` in its sandbox (`sandbox.ts`). There, `server.ts` creates
 * homes (`homes.ts`) and accepts the gateway → `session.ts` runs programs for requests (`command.ts`, `running.ts`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { RunningJob } from '../../../domain/access/manifest.ts';
import type { Logger } from '../../../lib/log.ts';
import { inheritedEnvironment } from '../../../lib/packaging.ts';
import { loadSshKey } from '../../../lib/ssh/public-key.ts';
import { homesBelow, prepareDirectories } from './homes.ts';
import type { Account, FromLoginNode, ToLoginNode } from './messages.ts';
import { endProcesses } from './processes.ts';
import { findObstacle, loginNodeProgram, type Sandbox, systemPath } from './sandbox.ts';
import { writeJobs } from './slurm-programs.ts';

export interface LoginNodeOptions {
  dataDir: string;
  /** The gateway's present public keys, "ssh-ed25519 AAAA…": no other key opens accounts. */
  authorizedKeys(): readonly string[];
  /** Reads the accounts when the process starts. */
  accounts(): Promise<readonly Account[]>;
  log: Logger;
  /** False: run without namespaces, even if they are possible. */
  namespace?: boolean;
}

const startLimit = 15_000;
const stopLimit = 5_000;

/** Listens from now on. If the child process ends, for any reason, the next connection starts it again. */
export async function openLoginNode(options: LoginNodeOptions): Promise<LoginNode> {
  // 0711: without a mount namespace the accounts must traverse it to their homes.
  mkdirSync(options.dataDir, { recursive: true, mode: 0o711 });
  const { publicKey } = loadSshKey(join(options.dataDir, 'host_key'));
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new LoginNode(options, server, publicKey);
}

export class LoginNode {
  readonly host = '127.0.0.1';
  readonly port: number;
  /** "ssh-ed25519 AAAA…" */
  readonly hostKey: string;
  readonly #options: LoginNodeOptions;
  readonly #server: Server;
  /** Undefined before the first connection: most login nodes are idle at any time, and a process takes 100 MB. */
  #process: Promise<ChildProcess> | undefined;
  #ended = Promise.resolve();
  /** Callbacks for changes of accounts that the child process has not answered yet. */
  readonly #waiting: ((error: string | undefined) => void)[] = [];
  #running = true;

  constructor(options: LoginNodeOptions, server: Server, hostKey: string) {
    this.#options = options;
    this.#server = server;
    this.hostKey = hostKey;
    this.port = (server.address() as AddressInfo).port;
    server.on('error', (error) => options.log.error('login_node_listen_error', { error }));
    server.on('connection', (socket) => void this.#handOver(socket));
  }

  get running(): boolean {
    return this.#running;
  }

  /** Replaces the accounts. Resolves once the sessions of removed ones have ended. */
  async setAccounts(accounts: readonly Account[]): Promise<void> {
    const child = await this.#process?.catch(() => undefined);
    if (!child?.connected) return;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#waiting.push(resolve);
    send(child, { type: 'accounts', accounts });
    const error = await promise;
    if (error !== undefined) throw new Error(error);
  }

  /** Writes the list of running jobs; each has all GPUs of its node. */
  setJobs(jobs: readonly RunningJob[], gpusPerNode: number): void {
    writeJobs(homesBelow(this.#options.dataDir), jobs, gpusPerNode);
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#server.close();
    const child = await this.#process?.catch(() => undefined);
    if (child) send(child, { type: 'stop' });
    const timer = setTimeout(() => child?.kill('SIGKILL'), stopLimit);
    await this.#ended;
    clearTimeout(timer);
  }

  async #handOver(socket: Socket): Promise<void> {
    socket.on('error', () => undefined);
    this.#process ??= this.#start();
    const starting = this.#process;
    try {
      const child = await starting;
      const connection = { type: 'connection', authorizedKeys: this.#options.authorizedKeys() } as const;
      if (this.#running && child.connected) send(child, connection, socket);
      else socket.destroy();
    } catch (error) {
      const { log, dataDir } = this.#options;
      log.error('login_node_start_failed', { dataDir, error });
      socket.destroy();
      await this.#ended;
      if (this.#process === starting) this.#process = undefined;
    }
  }

  /** Resolves when the process is ready. Rejects with a message for the operator. */
  async #start(): Promise<ChildProcess> {
    const { dataDir, log } = this.#options;
    const accounts = await this.#options.accounts();
    const sandbox = await findSandbox(this.#options);
    const ownHomes = prepareDirectories(dataDir);
    const { privateKey: hostKey } = loadSshKey(join(dataDir, 'host_key'));
    const { port } = this;
    const child = spawnLoginNode(sandbox, ownHomes, log);
    const { promise, resolve, reject } = Promise.withResolvers<ChildProcess>();
    this.#ended = endOf(child, log).then((how) => {
      reject(new Error('The login node ended while it was starting; the log says why.'));
      return this.#onEnd(child, sandbox, how);
    });
    child.on('message', (message: FromLoginNode) => {
      if (message.type === 'log') log[message.level](message.event, message.fields);
      else if (message.type === 'ready') resolve(child);
      else if (message.type === 'failed') reject(new Error(message.message));
      // Answers come in the order of the requests.
      else this.#waiting.shift()?.(message.error);
    });
    const late = setTimeout(() => {
      reject(new Error('The login node did not start in time.'));
      child.kill('SIGKILL');
    }, startLimit);
    const homes = sandbox === 'namespaces' ? '/home' : ownHomes;
    send(child, { type: 'start', settings: { homes, sandbox, hostKey, accounts, port } });
    return promise.finally(() => clearTimeout(late));
  }

  async #onEnd({ pid }: ChildProcess, sandbox: Sandbox, { code, signal }: Exit): Promise<void> {
    const { log, dataDir } = this.#options;
    if (this.#running) log.error('login_node_exited', { pid, code, signal, dataDir });
    for (const answer of this.#waiting.splice(0)) answer('The login node has ended.');
    // A process that did not exit with 0 had no time to end its sessions.
    if (code !== 0 && sandbox !== 'namespaces')
      await endProcesses(this.port).catch((error) => log.error('login_node_sessions_left', { error }));
    this.#process = undefined;
  }
}

async function findSandbox({ namespace = true, log }: LoginNodeOptions): Promise<Sandbox> {
  if (process.getuid?.() !== 0) return 'self';
  if (!namespace) return 'root';
  const reason = await findObstacle();
  if (reason === undefined) return 'namespaces';
  log.warn('login_node_without_namespace', { reason });
  return 'root';
}

function spawnLoginNode(sandbox: Sandbox, homes: string, log: Logger): ChildProcess {
  const { file, args } = loginNodeProgram(sandbox, homes);
  const child = spawn(file, args, {
    // A session of its own: Ctrl-C in the server's terminal must reach only the server.
    detached: true,
    env: { PATH: systemPath, ...inheritedEnvironment() },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  child.stderr?.on('data', (text: Buffer) =>
    log.error('login_node_stderr', { text: text.toString().trim() }),
  );
  return child;
}

interface Exit {
  code: number | null;
  signal: string | null;
}

function endOf(child: ChildProcess, log: Logger): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.on('error', (error) => {
      log.error('login_node_process_error', { error });
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
  });
}

function send(child: ChildProcess, message: ToLoginNode, socket?: Socket): void {
  // The process may be about to exit; its `exit` event reports that.
  if (child.connected) child.send(message, socket, () => undefined);
}

/**
 * A login node that costs next to nothing until somebody connects: the server's process listens for it, and starts the
 * login node's own process with the first connection. Most clusters of a large installation are idle at any time, and
 * a process each takes 100 MB. The first few start at once, so that a small installation never waits.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { loadSshKey } from '../../../../ssh/key-file.ts';
import { type Account, type LoginNode, type LoginNodeOptions, startLoginNode } from './index.ts';

export interface OnDemandOptions extends Omit<LoginNodeOptions, 'accounts' | 'port'> {
  /** Reads the accounts when the process starts. */
  accounts(): Promise<readonly Account[]>;
}

const startedAtOnce = 4;
let processes = 0;
/** One after the other: a process that starts takes a whole core for a moment. */
let starting: Promise<void> = Promise.resolve();

/** Takes connections from now on. A process that ended, for whatever reason, is started again with the next one. */
export async function openLoginNode(options: OnDemandOptions): Promise<OnDemandLoginNode> {
  const { dataDir, log } = options;
  // 0711: without a mount namespace the accounts must pass through to their homes.
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const { publicKey } = loadSshKey(join(dataDir, 'host_key'));
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const node = new OnDemandLoginNode(options, server, publicKey);
  starting = starting
    .then(() => node.startEarly())
    .catch((error) => log.error('login_node_start_failed', { dataDir, error }));
  return node;
}

export class OnDemandLoginNode {
  readonly host = '127.0.0.1';
  readonly port: number;
  /** "ssh-ed25519 AAAA…" */
  readonly hostKey: string;
  readonly #options: OnDemandOptions;
  readonly #server: Server;
  #process: Promise<LoginNode> | undefined;
  #running = true;

  constructor(options: OnDemandOptions, server: Server, hostKey: string) {
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

  /** Starts the process before anybody connects, unless enough others run already. */
  async startEarly(): Promise<void> {
    if (!this.#running || processes >= startedAtOnce) return;
    const accounts = await this.#options.accounts();
    if (this.#running && accounts.length > 0) await this.#started(accounts);
  }

  async setAccounts(accounts: readonly Account[]): Promise<void> {
    const node = await this.#process?.catch(() => undefined);
    if (node?.running) await node.setAccounts(accounts);
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#server.close();
    const node = await this.#process?.catch(() => undefined);
    await node?.stop();
  }

  async #handOver(socket: Socket): Promise<void> {
    socket.on('error', () => undefined);
    try {
      const node = await this.#started();
      if (this.#running) node.adopt(socket);
      else socket.destroy();
    } catch (error) {
      const { log, dataDir } = this.#options;
      log.error('login_node_start_failed', { dataDir, error });
      socket.destroy();
    }
  }

  #started(accounts?: readonly Account[]): Promise<LoginNode> {
    if (this.#process) return this.#process;
    processes += 1;
    const started = this.#start(accounts);
    this.#process = started;
    const forget = () => {
      processes -= 1;
      if (this.#process === started) this.#process = undefined;
    };
    started.then((node) => node.exited).then(forget, forget);
    return started;
  }

  async #start(known?: readonly Account[]): Promise<LoginNode> {
    const accounts = known ?? (await this.#options.accounts());
    return startLoginNode({ ...this.#options, accounts, port: this.port });
  }
}

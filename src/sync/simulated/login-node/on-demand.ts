/**
 * A login node that costs next to nothing until the first connection: the server's process listens for it, and starts the
 * login node's own process then. Most clusters are idle at any time, and a process each takes 100 MB.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { loadSshKey } from '../../../lib/ssh/key-file.ts';
import { type Account, type LoginNodeOptions, type LoginNodeProcess, startLoginNode } from './index.ts';

export interface OnDemandOptions extends Omit<LoginNodeOptions, 'accounts' | 'port'> {
  /** Reads the accounts when the process starts. */
  accounts(): Promise<readonly Account[]>;
}

/** Takes connections from now on. A process that ended, for whatever reason, is started again with the next one. */
export async function openLoginNode(options: OnDemandOptions): Promise<LoginNode> {
  // 0711: without a mount namespace the accounts must pass through to their homes.
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
  readonly #options: OnDemandOptions;
  readonly #server: Server;
  #process: Promise<LoginNodeProcess> | undefined;
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
      this.#process ??= this.#start();
      const node = await this.#process;
      if (this.#running) node.adopt(socket);
      else socket.destroy();
    } catch (error) {
      const { log, dataDir } = this.#options;
      log.error('login_node_start_failed', { dataDir, error });
      socket.destroy();
    }
  }

  async #start(): Promise<LoginNodeProcess> {
    const forget = () => {
      this.#process = undefined;
    };
    try {
      const accounts = await this.#options.accounts();
      const node = await startLoginNode({ ...this.#options, accounts, port: this.port });
      void node.exited.then(forget);
      return node;
    } catch (error) {
      forget();
      throw error;
    }
  }
}

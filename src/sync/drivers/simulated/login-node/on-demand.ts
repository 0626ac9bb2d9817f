/**
 * A login node that costs next to nothing until somebody comes: the server's process listens for it, and starts the
 * login node's own process with the first connection. Most clusters of a large installation are idle at any time, and
 * a process each takes 100 MB. The first few start at once, so that a small installation never waits.
 */
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { loadSshKey } from '../../../../ssh/key-file.ts';
import { type Account, type LoginNode, type LoginNodeOptions, startLoginNode } from './index.ts';

export interface OnDemandOptions extends Omit<LoginNodeOptions, 'accounts' | 'port'> {
  /** Reads the accounts when the process starts. */
  accounts(): Promise<readonly Account[]>;
}

export type OnDemandLoginNode = Pick<
  LoginNode,
  'host' | 'port' | 'hostKey' | 'running' | 'setAccounts' | 'stop'
>;

const keptReady = 4;
let processes = 0;
/** One after the other: a process that starts takes a whole core for a moment. */
let warming: Promise<void> = Promise.resolve();

/** Takes connections from now on. A process that ended, for whatever reason, is started again with the next one. */
export async function openLoginNode(options: OnDemandOptions): Promise<OnDemandLoginNode> {
  const { log } = options;
  // 0711: without a mount namespace the accounts must pass through to their homes.
  mkdirSync(options.dataDir, { recursive: true, mode: 0o711 });
  const { publicKey: hostKey } = loadSshKey(join(options.dataDir, 'host_key'));
  const server = createServer({ pauseOnConnect: true }, (socket) => void take(socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  server.on('error', (error) => log.error('login_node_listen_error', { error }));
  const { port } = server.address() as AddressInfo;
  let node: Promise<LoginNode> | undefined;
  let running = true;

  function wake(accounts?: readonly Account[]): Promise<LoginNode> {
    if (node) return node;
    const started = start(accounts);
    node = started;
    const forget = () => {
      if (node === started) node = undefined;
    };
    started.then((it) => it.exited).then(forget, forget);
    return started;
  }

  async function start(accounts?: readonly Account[]): Promise<LoginNode> {
    processes += 1;
    try {
      const known = accounts ?? (await options.accounts());
      const it = await startLoginNode({ ...options, accounts: known, port });
      void it.exited.then(() => {
        processes -= 1;
      });
      return it;
    } catch (error) {
      processes -= 1;
      throw error;
    }
  }

  async function take(socket: Socket): Promise<void> {
    socket.on('error', () => undefined);
    try {
      const it = await wake();
      if (running) it.adopt(socket);
      else socket.destroy();
    } catch (error) {
      log.error('login_node_start_failed', { dataDir: options.dataDir, error });
      socket.destroy();
    }
  }

  async function warm(): Promise<void> {
    if (!running || processes >= keptReady) return;
    const accounts = await options.accounts();
    if (running && accounts.length > 0) await wake(accounts);
  }

  warming = warming
    .then(warm)
    .catch((error) => log.error('login_node_start_failed', { dataDir: options.dataDir, error }));
  return {
    host: '127.0.0.1',
    port,
    hostKey,
    get running() {
      return running;
    },
    async setAccounts(accounts) {
      const it = await node?.catch(() => undefined);
      if (it?.running) await it.setAccounts(accounts);
    },
    async stop() {
      running = false;
      server.close();
      const it = await node?.catch(() => undefined);
      await it?.stop();
    },
  };
}

/** A login node's process whose connections this process takes: what `on-demand.ts` does, without waiting for the first. */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { loadSshKey } from '../../../src/lib/ssh/key-file.ts';
import {
  type LoginNodeOptions,
  type LoginNodeProcess,
  startLoginNode,
} from '../../../src/sync/simulated/login-node/index.ts';

export interface ListeningNode extends LoginNodeProcess {
  readonly port: number;
  readonly hostKey: string;
}

export type ListeningNodeOptions = Omit<LoginNodeOptions, 'port'>;

export async function startListeningNode(options: ListeningNodeOptions): Promise<ListeningNode> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o711 });
  const { publicKey: hostKey } = loadSshKey(join(options.dataDir, 'host_key'));
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const node = await startLoginNode({ ...options, port }).catch((error: unknown) => {
    server.close();
    throw error;
  });
  server.on('connection', (socket) => node.adopt(socket));
  void node.exited.then(() => server.close());
  return Object.assign(node, { port, hostKey });
}

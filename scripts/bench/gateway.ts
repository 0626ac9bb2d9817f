/** The gateway alone in a process: `node gateway.ts <JSON of GatewayOrder>` lets one key in, to one login node. */
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { Route } from '../../src/gateway/ssh/decision.ts';
import { startGateway } from '../../src/gateway/ssh/index.ts';
import { createLogger } from '../../src/lib/log.ts';

export interface GatewayOrder {
  port: number;
  hostKeyFile: string;
  clientKeyFile: string;
  /** The public key that is let in. */
  userKey: string;
  loginName: string;
  username: string;
  loginNode: Route['loginNode'];
}

const order = JSON.parse(process.argv[2] ?? '') as GatewayOrder;
const route: Route = {
  clusterId: order.loginName.slice(0, 36),
  userId: 'user_bench',
  username: order.username,
  keyId: 'ssh_key_bench',
  shell: userInfo().shell ?? '/bin/sh',
  loginNode: order.loginNode,
};
await startGateway({
  listen: { host: '127.0.0.1', port: order.port },
  hostKeys: [readFileSync(order.hostKeyFile, 'utf8')],
  clientKeys: [readFileSync(order.clientKeyFile, 'utf8')],
  log: createLogger('warn'),
  // All of them are one person here.
  limits: { sessionsPerUser: 4_000 },
  authorize: async ({ loginName, publicKey }) =>
    loginName === order.loginName && order.userKey.startsWith(publicKey)
      ? { allowed: true, route }
      : { allowed: false, reason: 'unknown key', message: '', disclose: false },
});

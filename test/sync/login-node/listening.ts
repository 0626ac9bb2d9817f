/** A login node whose process has started, and which process that is. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Logger } from '../../../src/lib/log.ts';
import {
  type LoginNode,
  type LoginNodeOptions,
  openLoginNode,
} from '../../../src/sync/simulated/login-node/index.ts';
import type { Account } from '../../../src/sync/simulated/login-node/messages.ts';

export interface ListeningNode extends LoginNode {
  readonly pid: number;
}

export type ListeningNodeOptions = Omit<LoginNodeOptions, 'accounts'> & { accounts: readonly Account[] };

/** Rejects where it does not start. */
export async function startListeningNode(options: ListeningNodeOptions): Promise<ListeningNode> {
  const before = new Set(children());
  let failure: unknown;
  const log: Logger = {
    ...options.log,
    error(event, fields) {
      if (event === 'login_node_start_failed') failure = (fields as { error: unknown }).error;
      options.log.error(event, fields);
    },
  };
  const node = await openLoginNode({ ...options, accounts: async () => options.accounts, log });
  const client = connect(node.port, node.host);
  // The version of its SSH server, or the end.
  const answer = await Promise.race([once(client, 'data'), once(client, 'close')]);
  client.destroy();
  const pid = children().find((one) => !before.has(one));
  if (!Buffer.isBuffer(answer[0]) || pid === undefined) {
    await node.stop();
    throw failure ?? new Error('the login node did not start');
  }
  return Object.assign(node, { pid });
}

/** The processes that this one has started. */
export function children(): number[] {
  return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').map(Number);
}

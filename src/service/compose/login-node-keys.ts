/** A part of the composition root: whether login nodes take the key that is to be the gateway's, asked while it has two. */
import type { Problem } from '../../domain/installation-state.ts';
import { askKey } from '../../gateway/ssh/login/ask-key.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { listLoginNodes } from '../../store/clusters/login-nodes.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import type { ServiceKeys } from './service-keys.ts';

export interface LoginNodeKeys {
  problems(): Problem[];
  stop(): Promise<void>;
}

const usualTimes = { firstMs: 60_000, everyMs: 3_600_000 };
const mostNamed = 20;

/** Asks them now and then. Without the next key's line, nobody could log in there once the former is gone. */
export function watchLoginNodes(
  { store, keys, log }: { store: Store; keys: Pick<ServiceKeys, 'of'>; log: Logger },
  times = usualTimes,
): LoginNodeKeys {
  let refusals: string[] = [];
  const ask = async () => {
    const { used, next, former } = keys.of('client');
    refusals = next || former ? await refusalsOf(store.read, (next ?? used).publicKey) : [];
  };
  const onFault = (error: unknown) => log.error('gateway.keys.unasked', { error });
  const rounds = startRounds(ask, { ...times, onFault });
  return {
    problems() {
      const { former, until } = keys.of('client');
      if (refusals.length === 0 || until === undefined) return [];
      const rest = refusals.length > mostNamed ? [`… and ${refusals.length - mostNamed} more.`] : [];
      return [
        {
          area: 'gateway',
          about: 'Gateway key for login nodes',
          urgency: former ? 'now' : 'soon',
          message: `Login nodes do not take the next key, and let nobody in from ${until} on: ${[...refusals.slice(0, mostNamed), ...rest].join(' ')}`,
          action:
            'Put all lines that `andromeda admin gateway key` prints where they keep the key of the gateway.',
        },
      ];
    },
    stop: () => rounds.stop(),
  };
}

/** Where everyone has a login node of their own, there are thousands. */
const atOnce = 16;

/** Sentences about those that would not, or that cannot be asked. */
async function refusalsOf(db: Reader, publicKey: string): Promise<string[]> {
  const nodes = await listLoginNodes(db);
  const refusals: string[] = [];
  const rest = nodes.values();
  const worker = async () => {
    for (const { cluster, node, username } of rest) {
      const why = !node.up
        ? 'it is down'
        : username === undefined
          ? 'nobody has an account there who could be asked about'
          : await askKey({ loginNode: node, username, publicKey });
      if (why !== undefined) refusals.push(`${cluster}, ${node.name} (${node.host}:${node.port}): ${why}.`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, nodes.length) }, worker));
  return refusals.sort();
}

/** A part of the composition root: asks login nodes whether they accept the gateway's next key, until they do. */
import type { Problem } from '../../domain/installation-state.ts';
import { allKeys } from '../../domain/key-rotation.ts';
import { askKey, type KeyQuestion } from '../../gateway/ssh/login/ask-key.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { listLoginNodes } from '../../store/clusters/observations.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import type { ServiceKeys } from './service-keys.ts';

export interface LoginNodeKeys {
  problems(): Problem[];
  stop(): Promise<void>;
}

const usualTimes = { firstMs: 60_000, everyMs: 60_000, againMs: 3_600_000 };
const mostNamed = 20;

/** Asks login nodes about a new key at once, and then at intervals until it is the only one and all accept it. */
export function watchLoginNodes(
  { store, keys, log }: { store: Store; keys: Pick<ServiceKeys, 'of'>; log: Logger },
  { againMs, ...times } = usualTimes,
): LoginNodeKeys {
  let refusals: string[] = [];
  let asked = { about: keys.of('client').used.publicKey, at: Number.NEGATIVE_INFINITY };
  const ask = async () => {
    const { used, next, former } = keys.of('client');
    const { publicKey } = next ?? used;
    const isOther = publicKey !== asked.about;
    const isOpen = next !== undefined || former !== undefined || refusals.length > 0;
    if (!isOther && !(isOpen && performance.now() - asked.at >= againMs)) return;
    const clientKeys = allKeys(keys.of('client')).map(({ privateKey }) => privateKey);
    refusals = await refusalsOf(store.read, { publicKey, clientKeys });
    asked = { about: publicKey, at: performance.now() };
  };
  const onFault = (error: unknown) => log.error('gateway.keys.unasked', { error });
  const rounds = startRounds(ask, { ...times, onFault });
  return {
    problems() {
      if (refusals.length === 0) return [];
      const { next, until } = keys.of('client');
      const rest = refusals.length > mostNamed ? [`… and ${refusals.length - mostNamed} more.`] : [];
      const what = `Login nodes do not take the ${next ? 'next' : 'present'} key, and let nobody in${until === undefined ? '' : ` from ${until} on`}`;
      return [
        {
          area: 'gateway',
          about: 'Gateway key for login nodes',
          urgency: next ? 'soon' : 'now',
          message: `${what}: ${[...refusals.slice(0, mostNamed), ...rest].join(' ')}`,
          action:
            'Put all lines that `andromeda admin gateway key` prints where they keep the key of the gateway.',
        },
      ];
    },
    stop: () => rounds.stop(),
  };
}

/** Limit on parallel questions. Where everyone has a login node of their own, there are thousands. */
const atOnce = 16;

/** Sentences about login nodes that reject the key, or cannot be asked. */
async function refusalsOf(db: Reader, of: Pick<KeyQuestion, 'publicKey' | 'clientKeys'>): Promise<string[]> {
  const nodes = await listLoginNodes(db);
  const refusals: string[] = [];
  const rest = nodes.values();
  const worker = async () => {
    for (const { cluster, node, username } of rest) {
      const why = !node.up
        ? 'it is down'
        : username === undefined
          ? 'nobody has an account there who could be asked about'
          : await askKey({ ...of, loginNode: node, username });
      if (why !== undefined) refusals.push(`${cluster}, ${node.name} (${node.host}:${node.port}): ${why}.`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, nodes.length) }, worker));
  return refusals.sort();
}

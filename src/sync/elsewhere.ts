/** How passes go that other servers run, as they last told: what operators are shown is the same on every server. */
import type { Store } from '../store/index.ts';
import type { PassState } from './worker.ts';

export interface PassesElsewhere {
  /** Tells the others how the passes of a side go. Where there are none, it does nothing. */
  announce(key: string, state: PassState): void;
  of(key: string): PassState | undefined;
  stop(): void;
}

const topic = 'sync.passed';
/** Of many more sides than there will be; the one that was told of first goes. */
const most = 10_000;
const longestKey = 100;
/** What a date can be made of (ECMA-262, 21.4.1.1). */
const latestTime = 8.64e15;

export function createPassesElsewhere({
  messages,
  server,
}: Pick<Store, 'messages' | 'server'>): PassesElsewhere {
  const states = new Map<string, PassState>();
  const stop = messages.on(topic, (body) => {
    const { key, state } = readState(body);
    states.delete(key);
    states.set(key, state);
    for (const oldest of states.keys()) if (states.size > most) states.delete(oldest);
  });
  return {
    announce(key, { nextAt, failures, failingSince }) {
      if (server.isAlone) return;
      // Lost, it is told again with the next pass.
      messages.send(topic, { key, nextAt, failures, failingSince }).catch(() => {});
    },
    of: (key) => states.get(key),
    stop,
  };
}

/** Throws where it is none. */
function readState(received: unknown): { key: string; state: PassState } {
  const { key, nextAt, failures, failingSince } = received as Record<keyof PassState | 'key', unknown>;
  if (typeof key !== 'string' || key.length > longestKey)
    throw new Error('the message names no side of a cluster');
  const count = Number.isSafeInteger(failures) ? Number(failures) : 0;
  return { key, state: { nextAt: timeOf(nextAt), failures: count, failingSince: timeOf(failingSince) } };
}

function timeOf(received: unknown): number | undefined {
  return typeof received === 'number' && Math.abs(received) < latestTime ? received : undefined;
}

/**
 * A part of the composition root: the gateways of all servers, asked as one server asks its gateway processes. What a question
 * concerns is found by each server in its own gateway; none tells another whom to let in.
 */
import type { Config } from '../config/index.ts';
import type { SshSession } from '../domain/ssh-session.ts';
import type { SessionFilter } from '../gateway/index.ts';
import { defaultLimits } from '../gateway/limits.ts';
import type { Gateways } from '../gateway-process/gateways.ts';
import type { Logger } from '../lib/log.ts';
import type { Store } from '../store/index.ts';
import { listSessionsElsewhere } from '../store/open-sessions.ts';
import { createOtherServers, type OtherServers } from './other-servers.ts';
import { recheckOnChange } from './recheck.ts';
import { watchSessionsOfServers } from './server-sessions.ts';

export type AllGateways = Pick<Gateways, 'recheck' | 'sessions'> & {
  /** Closes sessions on every server. */
  close(filter: SessionFilter, reason: string, text: string): void;
};

/** Nobody waits longer for sessions to be checked again: as long as for a gateway process. */
const usualRecheckMs = 1_000;
/** How much passed through a session is of no use later. */
const countMs = 500;
/** Who asks within this gets the same: pages ask whenever a session opens or ends. */
const countedMs = 1_000;

/** How much went through a session. */
type Passed = Pick<SshSession, 'id' | 'channels' | 'bytesUp' | 'bytesDown'>;

export interface AllGatewaysDeps {
  config: Pick<Config, 'gateway'>;
  store: Store;
  /** This server's own. */
  gateway: Gateways;
  log: Logger;
  now(): number;
  /** How long the others are waited for. */
  recheckMs?: number;
}

/** Joins this server's gateway with those of the others. Its own sessions are checked again after every change from now on. */
export function joinGateways(parts: AsyncDisposableStack, deps: AllGatewaysDeps): AllGateways {
  const { config, store, gateway: own, log, now } = deps;
  parts.defer(recheckOnChange(store, own, log));
  if (store.server.isAlone) return own;
  const graceMs = config.gateway.limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  parts.defer(watchSessionsOfServers({ store, gateway: own, graceMs, log, now }));
  const others = createOtherServers(store, log);
  parts.defer(() => others.stop());
  return withOthers(own, others, deps);
}

function withOthers(
  own: Gateways,
  others: OtherServers,
  { store, recheckMs = usualRecheckMs }: AllGatewaysDeps,
): AllGateways {
  answerOthers(own, others);
  const count = onceAWhile(async () => {
    const passed = (await others.ask('count', {}, countMs)).flatMap((part) => readPassed(part) ?? []);
    return new Map(passed.map((one) => [one.id, one]));
  });
  return {
    async recheck(filter = {}) {
      await Promise.all([own.recheck(filter), others.ask('recheck', { filter }, recheckMs)]);
    },
    close(filter, reason, text) {
      own.close(filter, reason, text);
      void others.ask('close', { filter, reason, text }, recheckMs);
    },
    async sessions() {
      const [here, recorded] = await Promise.all([
        own.sessions(),
        listSessionsElsewhere(store.read, store.server.id),
      ]);
      // One that this server has taken over may still be the other's in the table.
      const ids = new Set(here.map(({ id }) => id));
      const elsewhere = recorded.filter(({ id }) => !ids.has(id));
      if (elsewhere.length === 0) return here;
      const passed = await count();
      return [...here, ...elsewhere.map((session) => ({ ...session, ...passed.get(session.id) }))];
    },
  };
}

/** What others ask is done for this server's own gateway. */
function answerOthers(own: Gateways, others: OtherServers): void {
  others.answer('recheck', async (body) => {
    // Rather too many of them than one too few.
    await own.recheck(readFilter((body as { filter?: unknown }).filter) ?? {});
    return [];
  });
  others.answer('close', async (body) => {
    const { filter: received, reason, text } = body as Record<'filter' | 'reason' | 'text', unknown>;
    const filter = readFilter(received);
    // Those that this version cannot tell from others stay.
    if (!filter || Object.keys(filter).length === 0)
      throw new Error('it is not clear which sessions to close');
    own.close(filter, String(reason), String(text));
    return [];
  });
  others.answer('count', async () =>
    (await own.sessions()).map(
      ({ id, channels, bytesUp, bytesDown }): Passed => ({ id, channels, bytesUp, bytesDown }),
    ),
  );
}

const filterFields = ['id', 'clusterId', 'userId', 'keyId', 'loginNode'] as const;

/** Undefined where it cannot be read, or names something that this version knows nothing of. */
function readFilter(received: unknown): SessionFilter | undefined {
  if (typeof received !== 'object' || received === null || Array.isArray(received)) return undefined;
  const isKnown = ([field, value]: [string, unknown]) =>
    filterFields.some((one) => one === field) && typeof value === 'string';
  return Object.entries(received).every(isKnown) ? received : undefined;
}

function readPassed(received: unknown): Passed | undefined {
  const { id, ...counts } = Object(received) as Record<keyof Passed, unknown>;
  const [channels, bytesUp, bytesDown] = [counts.channels, counts.bytesUp, counts.bytesDown].map((count) =>
    Number.isSafeInteger(count) ? Number(count) : 0,
  );
  if (typeof id !== 'string') return undefined;
  return { id, channels: channels ?? 0, bytesUp: bytesUp ?? 0, bytesDown: bytesDown ?? 0 };
}

/** What `ask` gives, also to whoever asks while it is under way or shortly after. */
function onceAWhile<T>(ask: () => Promise<T>): () => Promise<T> {
  let last: { until: number; answer: Promise<T> } | undefined;
  return () => {
    if (last && performance.now() < last.until) return last.answer;
    last = { until: performance.now() + countedMs, answer: ask() };
    return last.answer;
  };
}

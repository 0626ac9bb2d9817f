/**
 * The gateways of all servers, asked like the gateway processes of one server. Each server looks for the sessions of
 * a question in its own gateway; no server decides for another who may log in.
 */
import type { SshSession } from '../../../domain/access/ssh-session.ts';
import type { Gateways } from '../../../gateway/process/gateways.ts';
import { isFilter, type SessionFilter } from '../../../gateway/ssh/decision.ts';
import type { Logger } from '../../../lib/log.ts';
import { listSessionsElsewhere } from '../../../store/audit/open-sessions.ts';
import { type Heard, hears, type Store } from '../../../store/engine/index.ts';
import type { Peers } from './peers.ts';
import { watchOwnSessions } from './sessions.ts';

export type AllGateways = Pick<Gateways, 'recheck' | 'sessions'> & {
  close(filter: SessionFilter, reason: string, text: string): void;
};

/** Timeout of a recheck on other servers: as long as for a gateway process. */
const usualRecheckMs = 1_000;
/** Timeout of a count: later byte counts are of no use. */
const countMs = 500;
/** Calls within this time share one answer: pages ask whenever a session opens or ends. */
const countedMs = 1_000;

/** The traffic of a session. */
type Passed = Pick<SshSession, 'id' | 'channels' | 'bytesUp' | 'bytesDown'>;

export interface AllGatewaysDeps {
  store: Store;
  peers: Pick<Peers, 'ask' | 'answer' | 'forOthers'>;
  gateway: Gateways;
  log: Logger;
  recheckMs?: number;
}

/** Joins this server's gateway with those of the others. Its own sessions are checked again after every change from now on. */
export function joinGateways(parts: AsyncDisposableStack, deps: AllGatewaysDeps): AllGateways {
  const { store, peers, gateway: own, log } = deps;
  parts.defer(recheckOnChange(store, own, log));
  const all = peers.forOthers(() => {
    parts.defer(watchOwnSessions({ store, gateway: own, log }));
    return withOthers(own, deps);
  });
  return all ?? own;
}

function withOthers(
  own: Gateways,
  { store, peers, recheckMs = usualRecheckMs }: AllGatewaysDeps,
): AllGateways {
  answerOthers(own, peers);
  const count = onceAWhile(async () => {
    const passed = (await peers.ask('count', {}, countMs)).flatMap((part) => readPassed(part) ?? []);
    return new Map(passed.map((one) => [one.id, one]));
  });
  return {
    async recheck(filter = {}) {
      await Promise.all([own.recheck(filter), peers.ask('recheck', { filter }, recheckMs)]);
    },
    close(filter, reason, text) {
      own.close(filter, reason, text);
      void peers.ask('close', { filter, reason, text }, recheckMs);
    },
    async sessions() {
      const [here, recorded] = await Promise.all([
        own.sessions(),
        listSessionsElsewhere(store.read, store.server.id),
      ]);
      // The table may still assign a session that this server has taken over to the other.
      const ids = new Set(here.map(({ id }) => id));
      const elsewhere = recorded.filter(({ id }) => !ids.has(id));
      if (elsewhere.length === 0) return here;
      const passed = await count();
      return [...here, ...elsewhere.map((session) => ({ ...session, ...passed.get(session.id) }))];
    },
  };
}

function answerOthers(own: Gateways, peers: AllGatewaysDeps['peers']): void {
  peers.answer('recheck', async (body) => {
    // An unknown filter rechecks all sessions: too many are harmless, one too few is not.
    const { filter } = body as { filter?: unknown };
    await own.recheck(isFilter(filter) ? filter : {});
    return [];
  });
  peers.answer('close', async (body) => {
    const { filter, reason, text } = body as Record<'filter' | 'reason' | 'text', unknown>;
    // Sessions stay open where this version does not understand the filter.
    if (!isFilter(filter) || Object.keys(filter).length === 0)
      throw new Error('it is not clear which sessions to close');
    own.close(filter, String(reason), String(text));
    return [];
  });
  peers.answer('count', async () =>
    (await own.sessions()).map(
      ({ id, channels, bytesUp, bytesDown }): Passed => ({ id, channels, bytesUp, bytesDown }),
    ),
  );
}

function readPassed(received: unknown): Passed | undefined {
  const { id, ...counts } = Object(received) as Record<keyof Passed, unknown>;
  const [channels, bytesUp, bytesDown] = [counts.channels, counts.bytesUp, counts.bytesDown].map((count) =>
    Number.isSafeInteger(count) ? Number(count) : 0,
  );
  if (typeof id !== 'string') return undefined;
  return { id, channels: channels ?? 0, bytesUp: bytesUp ?? 0, bytesDown: bytesDown ?? 0 };
}

/** Caches the answer of `ask` for `countedMs`. */
function onceAWhile<T>(ask: () => Promise<T>): () => Promise<T> {
  let last: { until: number; answer: Promise<T> } | undefined;
  return () => {
    if (last && performance.now() < last.until) return last.answer;
    last = { until: performance.now() + countedMs, answer: ask() };
    return last.answer;
  };
}

const mostFilters = 50;

/** Checks sessions again after every commit that could end one. */
function recheckOnChange(store: Store, gateway: Gateways, log: Logger): () => void {
  return store.onChange(hears.gateway, (changes) => {
    // Checking all sessions once costs less than thousands of narrow checks, as after a lab file.
    const filters = changes.length > mostFilters ? [{}] : changes.map(sessionsOf);
    for (const filter of filters) {
      gateway.recheck(filter).catch((error) => log.error('gateway.recheck.failed', { error }));
    }
  });
}

/** The sessions that a change can end: narrowly, since a busy gateway has many. Changes of an organization, or of everything, concern all. */
function sessionsOf(change: Heard<'gateway'>): SessionFilter {
  if (change.kind === 'person') return { userId: change.userId };
  if (change.kind === 'cluster' || change.kind === 'report') return { clusterId: change.clusterId };
  return {};
}

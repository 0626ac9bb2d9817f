/**
 * Sessions in the record of several servers. Each closes its own on request of others, and reopens those of its own
 * that were presumed closed. The leader closes in the record the sessions of servers that are gone.
 */
import { serverLifeMs } from '../../../domain/server.ts';
import type { Gateways } from '../../../gateway/process/gateways.ts';
import type { Logger } from '../../../lib/log.ts';
import { startRounds } from '../../../lib/rounds.ts';
import {
  listClosings,
  listServersWithSessions,
  presumeSessionsClosed,
  reopenSessions,
} from '../../../store/audit/open-sessions.ts';
import { hears, type Store } from '../../../store/engine/index.ts';
import { listServers } from '../../../store/servers/servers.ts';

/** The reason in the record of a session that was ended through the API, on any server. */
export const closedByOperator = 'closed by an operator';

const everyMs = 5_000;

/** Closes this server's sessions on request of others, and reopens those presumed closed. Returns a function that stops. */
export function watchOwnSessions({
  store,
  gateway,
  log,
}: {
  store: Store;
  gateway: Pick<Gateways, 'close' | 'sessions'>;
  log: Logger;
}): () => void {
  const round = async () => {
    for (const { id, text } of await listClosings(store.read, store.server.id))
      gateway.close({ id }, closedByOperator, text);
    const open = new Set((await gateway.sessions()).map(({ id }) => id));
    const reopened = await reopenSessions(store, open);
    if (reopened > 0) log.warn('gateway.sessions.reopened', { sessions: reopened });
  };
  const onFault = (error: unknown) => log.error('gateway.sessions.failed', { error });
  // The interval is the fallback if the notice about a session to be closed is lost.
  const rounds = startRounds(round, { everyMs, onFault });
  const stopListening = store.onChange(hears.closings, (_, { from }) => {
    if (from === 'elsewhere') rounds.wake();
  });
  return () => {
    stopListening();
    void rounds.stop();
  };
}

export interface GoneSessionsOptions {
  store: Store;
  /** How long sessions continue while their access is not confirmed: after that a server that is gone has none. */
  graceMs: number;
  log: Logger;
}

/** Allowance for the last checks, in addition to the grace, before no session of a server that is gone can be open. */
const slackMs = 10_000;

/** Closes the recorded sessions of servers that are gone. Returns a function that stops. */
export function closeSessionsOfGone({ store, graceMs, log }: GoneSessionsOptions): () => Promise<void> {
  /** Since when, without a break, this server has seen that others are gone; by the monotonic clock. */
  const goneSince = new Map<string, number>();
  const limitMs = graceMs + slackMs;
  let ranAt = performance.now();

  async function round(): Promise<void> {
    // A stalled process has not seen the heartbeats of the others meanwhile.
    if (performance.now() - ranAt > serverLifeMs) goneSince.clear();
    ranAt = performance.now();
    const live = new Set((await listServers(store)).filter((one) => one.isLive).map(({ id }) => id));
    const gone = (await listServersWithSessions(store.read)).filter(
      (id) => id !== store.server.id && !live.has(id),
    );
    for (const id of goneSince.keys()) if (!gone.includes(id)) goneSince.delete(id);
    for (const id of gone) {
      const since = goneSince.get(id) ?? performance.now();
      goneSince.set(id, since);
      if (performance.now() - since < limitMs) continue;
      const reason = `its server was not seen for ${Math.round((serverLifeMs + limitMs) / 1000)} s`;
      const sessions = await presumeSessionsClosed(store, id, reason);
      if (sessions > 0) log.warn('gateway.sessions.presumed', { server: id, sessions });
    }
  }

  const onFault = (error: unknown) => {
    // A server that was not seen because the database was away is not gone.
    goneSince.clear();
    log.error('gateway.sessions.failed', { error });
  };
  return startRounds(round, { firstMs: everyMs, everyMs, onFault }).stop;
}

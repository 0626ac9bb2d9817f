/**
 * Sessions in the record of several servers. Each closes what others ask it to close, and takes back what was presumed of its
 * own. The leader closes in the record what a server had that is gone.
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

/** The reason in the record of a session that was ended through the API, by whichever server. */
export const closedByOperator = 'closed by an operator';

const everyMs = 5_000;

/** Closes this server's sessions that others ask it to close, and takes back what was presumed of them. Returns how to stop. */
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
  // Its interval is the net under the notice that a session is to be closed.
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
  /** How long sessions go on while their access is not confirmed: after that a server that is gone has none. */
  graceMs: number;
  log: Logger;
}

/** What is so long after a server was last seen that none of its sessions can be open: the grace, and the last checks. */
const slackMs = 10_000;

/** Closes in the record what a server had that is gone. Returns how to stop. */
export function closeSessionsOfGone({ store, graceMs, log }: GoneSessionsOptions): () => Promise<void> {
  /** Since when this server has seen, without a break, that others are gone; by the monotonic clock. */
  const goneSince = new Map<string, number>();
  const limitMs = graceMs + slackMs;
  let ranAt = performance.now();

  async function round(): Promise<void> {
    // A process that stood still has not seen what the others did meanwhile.
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

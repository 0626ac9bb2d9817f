/** A part of the composition root: which sessions of this server are checked again when something has changed, here or elsewhere. */
import type { SessionFilter } from '../gateway/index.ts';
import type { Gateways } from '../gateway-process/gateways.ts';
import type { Logger } from '../lib/log.ts';
import type { Change, Store } from '../store/index.ts';

const mostFilters = 50;

/** Sessions are checked again after every commit that could end one. */
export function recheckOnChange(store: Store, gateway: Gateways, log: Logger): () => void {
  return store.onChange((changes) => {
    const some = changes.filter(
      (change) =>
        !(
          'browsersOfUserId' in change ||
          'sessionsOfUserId' in change ||
          'requestsOfUserId' in change ||
          'closingSessionId' in change ||
          'ofService' in change
        ),
    );
    // One look at everybody costs less than one for each of thousands, as after a lab file.
    const filters = some.length > mostFilters ? [{}] : some.map(sessionsOf);
    for (const filter of filters) {
      gateway.recheck(filter).catch((error) => log.error('gateway.recheck.failed', { error }));
    }
  });
}

/** Whose sessions a change can end: narrowly, since a busy gateway has many. An organization's, and everything, are all of them. */
function sessionsOf(change: Change): SessionFilter {
  if ('userId' in change) return { userId: change.userId };
  if ('clusterId' in change) return { clusterId: change.clusterId };
  if ('observedClusterId' in change) return { clusterId: change.observedClusterId };
  return {};
}

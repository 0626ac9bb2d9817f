/**
 * Announces when permissions expire, so that what depends on them is updated then: access lists, bindings, open sessions,
 * pages. It decides nothing: reads of what a person holds leave out expired permissions anyway.
 */
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { findNextEnd, listEndedBetween } from '../../store/organizations/memberships.ts';

export function announceEnds({
  store,
  intervalMs,
  log,
  now,
}: {
  store: Store;
  /** At most so long between looks: the clock may be set. */
  intervalMs: number;
  log: Logger;
  now(): number;
}): () => void {
  // The other parts began with what held at the start, a moment ago.
  let seen = now() - intervalMs;
  async function announce(): Promise<number> {
    const moment = now();
    // A clock that is set back brings back what had ended.
    const [from, to] = moment < seen ? [moment, seen] : [seen, moment];
    const people = await listEndedBetween(store.read, from, to);
    if (people.length > 0) {
      await store.write(
        async (tx) => {
          for (const userId of people) tx.changed({ kind: 'person', userId });
        },
        { flush: false },
      );
      log.info('permissions.ended', { people: people.length });
    }
    seen = moment;
    const end = await findNextEnd(store.read, moment);
    return end === undefined ? intervalMs : Math.max(1, Math.min(intervalMs, end - now()));
  }

  const onFault = (error: unknown) => log.error('permissions.end.failed', { error });
  const rounds = startRounds(announce, { everyMs: intervalMs, onFault });
  const stopListening = store.onChange(hears.permissionEnds, (changes) => {
    if (changes.some((change) => change.kind === 'everything' || change.permissionEnd !== undefined))
      rounds.wake();
  });
  return () => {
    stopListening();
    void rounds.stop();
  };
}

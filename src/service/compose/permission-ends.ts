/**
 * What ends by itself of what people hold. Announces when permissions expire, so that what depends on them is updated then: access lists, bindings, open sessions,
 * pages. It decides nothing: reads of what a person holds leave out expired permissions anyway.
 */
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { reviewMembers } from '../../store/audit/member-reviews.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { findNextEnd, listEndedBetween } from '../../store/organizations/memberships.ts';

/** What ended before is looked for at the start: the leader before may have been away for a while, with another time. */
const takeOverMs = 90_000;

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
}): () => Promise<void> {
  let seen = now() - intervalMs - takeOverMs;
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
    return rounds.stop();
  };
}

/** An end is 30 days ahead: an hour is soon. */
const reviewMs = 3_600_000;

/** Reviews of members' access: see `domain/access/member-review.ts`. Returns how to stop. */
export function startMemberReviews({
  store,
  months,
  log,
  now,
}: {
  store: Store;
  months: number;
  log: Logger;
  now(): number;
}): () => Promise<void> {
  const round = async (stopping: AbortSignal) => {
    const ended = await reviewMembers(store, months, { now: now(), stopping });
    log[ended > 0 ? 'info' : 'debug']('access.reviewed', { ended });
  };
  const onFault = (error: unknown) => log.error('access.review.failed', { error });
  return startRounds(round, { everyMs: reviewMs, onFault }).stop;
}

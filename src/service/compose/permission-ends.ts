/**
 * Announces when permissions expire, so that what depends on them is updated then: access lists, bindings, open sessions,
 * pages. It decides nothing: reads of what a person holds leave out expired permissions anyway.
 */
import type { Logger } from '../../lib/log.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { findNextEnd, listEndedBetween } from '../../store/organizations/memberships.ts';

/** Returns how to stop. */
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
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let isLooking = false;
  /** Something changed since the look under way began. */
  let isDue = false;

  async function announce(): Promise<void> {
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
  }

  /** Returns how long to wait before the next time. */
  async function announceAndPlan(): Promise<number> {
    try {
      await announce();
      const end = await findNextEnd(store.read, now());
      return end === undefined ? intervalMs : Math.max(1, Math.min(intervalMs, end - now()));
    } catch (error) {
      log.error('permissions.end.failed', { error });
      return intervalMs;
    }
  }

  async function run(): Promise<void> {
    isDue = true;
    if (isLooking) return;
    clearTimeout(timer);
    isLooking = true;
    let waitMs = intervalMs;
    while (isDue && !isStopped) {
      isDue = false;
      waitMs = await announceAndPlan();
    }
    isLooking = false;
    if (!isStopped) timer = setTimeout(run, waitMs).unref();
  }

  const stopListening = store.onChange(hears.permissionEnds, (changes) => {
    if (changes.some((change) => change.kind === 'everything' || change.permissionEnd !== undefined))
      void run();
  });
  void run();
  return () => {
    isStopped = true;
    stopListening();
    clearTimeout(timer);
  };
}

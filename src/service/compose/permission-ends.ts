/** Expiry: permissions, members' access under review, access without a sign-in, old keys. */
import { dayMs, periodText, signInMs, signInWarningMs, warningMs } from '../../domain/access/lapse.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { reviewMembers } from '../../store/audit/member-reviews.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import { findNextEnd, listEndedBetween } from '../../store/organizations/memberships.ts';
import { findRegisteredBetween, findSignedInBetween } from '../../store/people/people.ts';

/** Looks back this far at the start: the former leader may have been away for a while, with another clock. */
const takeOverMs = 90_000;

/**
 * Announces the expiry of permissions, so that access lists, bindings, open sessions and pages are updated. It
 * decides nothing: reads of a person's permissions leave out expired ones anyway.
 */
export function announceEnds({
  store,
  intervalMs,
  log,
  now,
}: {
  store: Store;
  /** The longest wait between checks: the clock may be set. */
  intervalMs: number;
  log: Logger;
  now(): number;
}): () => Promise<void> {
  let seen = now() - intervalMs - takeOverMs;
  async function announce(): Promise<number> {
    const moment = now();
    // A clock that is set back makes ended permissions valid again.
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

/** Ends are 30 days ahead: an hour's delay is short. */
const reviewMs = 3_600_000;

/** Runs reviews of members' access: see `domain/access/member-review.ts`. Returns a function that stops. */
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

/** Logs whose access, and whose keys, lapse soon or have lapsed: at the start, and once a day. */
export function warnOfLapses(store: Store, log: Logger): () => Promise<void> {
  const { policy } = store.lapses;
  // Access that ends after every night is not worth a report.
  const signIn = signInWarningMs(signInMs(policy) ?? 0) > 0 ? signInMs(policy) : undefined;
  const keys = policy.keyMaxDays === undefined ? undefined : policy.keyMaxDays * dayMs;
  const report = async () => {
    await sayLapses(store, log, 'access', signIn);
    await sayLapses(store, log, 'keys', keys);
  };
  if (signIn === undefined && keys === undefined) return async () => {};
  const onFault = (error: unknown) => log.error('access.check.failed', { error });
  return startRounds(report, { everyMs: dayMs, onFault }).stop;
}

const kinds = {
  access: {
    find: findSignedInBetween,
    names: ['Access', 'the access'],
    after: 'without a sign-in for',
    advice: 'It comes back when they sign in.',
  },
  keys: {
    find: findRegisteredBetween,
    names: ['SSH keys', 'SSH keys'],
    after: 'after',
    advice: 'They have to register other ones.',
  },
} as const;

async function sayLapses(
  { read, lapses }: Store,
  log: Logger,
  what: keyof typeof kinds,
  ms: number | undefined,
): Promise<void> {
  if (ms === undefined) return;
  const { find, names, after, advice } = kinds[what];
  const limit = lapses.now() - ms;
  const lapsed = await find(read, '', toTime(limit));
  const lapsing = await find(read, toTime(limit), toTime(limit + warningMs(ms)));
  const rule = `${after} ${periodText(ms)}. ${advice}`;
  if (lapsed.people > 0) {
    const message = `${names[0]} of ${peopleText(lapsed.people)} lapsed, ${rule}`;
    log.warn('access.lapsed', { what, ...lapsed, message });
  }
  if (lapsing.people > 0) {
    const message = `Soon ${names[1]} of ${peopleText(lapsing.people)} will lapse, ${rule}`;
    log.warn('access.lapsing', { what, ...lapsing, message });
  }
}

function peopleText(people: number): string {
  return people === 1 ? '1 person' : `${people} people`;
}

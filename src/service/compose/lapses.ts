/** Says in the log whose access, and whose keys, lapse soon or have lapsed: at the start, and once a day. */
import { dayMs, periodText, signInMs, signInWarningMs, warningMs } from '../../domain/access/lapse.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import type { Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import { findRegisteredBetween, findSignedInBetween } from '../../store/people/people.ts';

export function warnOfLapses(store: Store, log: Logger): () => Promise<void> {
  const { policy } = store.lapses;
  // What is over after every night is nothing to report.
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

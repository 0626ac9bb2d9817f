/**
 * How a key of the service gives way to another: the next one is announced, then in use, and then the one before it is
 * retired. Both hold from the announcement to the end.
 */

export const keyKinds = ['host', 'client', 'issuer'] as const;
export type KeyKind = (typeof keyKinds)[number];

export const keySteps = ['announce', 'switch', 'back', 'withdraw', 'retire'] as const;
export type KeyStep = (typeof keySteps)[number];

/** A key by what it is known by: a fingerprint, or the `kid` of a token. */
export interface KnownKey {
  id: string;
  /** Since when the service has had it in this place. */
  since: string;
}

/** What the service had taken up when it started last. */
export interface KeysInUse {
  current: KnownKey;
  next?: KnownKey | undefined;
}

/** Without the kinds of key that are not recorded. */
export type AllKeysInUse = Partial<Record<KeyKind, KeysInUse>>;

export interface KeyRotationState {
  /** IDs of what lies on disk. At most one of the other two is there. */
  current: string;
  next?: string | undefined;
  previous?: string | undefined;
  /** Undefined where no service has started with these keys yet. */
  inUse: KeysInUse | undefined;
  /** How long what was signed with a key stays good. */
  signedMs: number;
}

/** Why a step makes no sense as things are, as a sentence that says what to do; undefined where it does. */
export function refusalOfKeyStep(step: KeyStep, { next, previous }: KeyRotationState): string | undefined {
  if (step === 'announce') {
    if (next !== undefined) return `There is a next key already, ${next}. Switch to it, or withdraw it.`;
    if (previous !== undefined) return `The key before this one, ${previous}, still holds. Retire it first.`;
    return undefined;
  }
  if (step === 'switch' || step === 'withdraw')
    return next === undefined ? 'There is no next key. Announce one first.' : undefined;
  return previous === undefined
    ? 'There is no key from before: nothing was switched, or it is retired already.'
    : undefined;
}

/** Why a step comes too soon and would lock people or servers out; undefined where it does not. */
export function prematureKeyStep(step: KeyStep, state: KeyRotationState, now: number): string | undefined {
  if (step === 'retire') return refusalToRetire(state, now);
  if (step !== 'switch' || state.inUse?.next?.id === state.next) return undefined;
  return 'The service has not taken up the next key yet, so that nobody knows it. Reload the service (`systemctl reload andromeda`) first.';
}

function refusalToRetire(state: KeyRotationState, now: number): string | undefined {
  const { current, previous, inUse, signedMs } = state;
  if (inUse?.current.id !== current)
    return `The service still uses ${previous}. Reload it (\`systemctl reload andromeda\`) first.`;
  const until = Date.parse(inUse.current.since) + signedMs;
  if (now >= until) return undefined;
  return `What was signed with ${previous} is good until ${new Date(until).toISOString()}. Retire it after that.`;
}

/** What the service has taken up, with how long it has had it: what was there before keeps its time. */
export function takenUp(
  before: KeysInUse | undefined,
  now: { current: string; next?: string | undefined; at: string },
): KeysInUse {
  const { current, next, at } = now;
  const known = (key: KnownKey | undefined, id: string) => (key?.id === id ? key : { id, since: at });
  return {
    current: known(before?.current, current),
    ...(next === undefined ? {} : { next: known(before?.next, next) }),
  };
}

/**
 * What several servers have taken up, as one would have it that is the last of them: the next key only where each of them has it,
 * and another key than `current` where one of them still uses it.
 */
export function combinedInUse(all: readonly KeysInUse[], current: string): KeysInUse | undefined {
  const late = all.find((one) => one.current.id !== current) ?? all[0];
  if (!late) return undefined;
  const next = latest(all.map((one) => one.next));
  return { current: latest(all.map((one) => one.current)) ?? late.current, ...(next && { next }) };
}

/** The key that all have, since the last of them has it; undefined where they differ. */
function latest(keys: readonly (KnownKey | undefined)[]): KnownKey | undefined {
  const [first] = keys;
  if (!first || keys.some((key) => key?.id !== first.id)) return undefined;
  const since = keys.reduce((last, key) => (key && key.since > last ? key.since : last), first.since);
  return { id: first.id, since };
}

/**
 * Access that lapses: of people who have not signed in for long, and of old SSH keys. No permission is removed: a sign-in,
 * or a new key, restores access. The two limits, in days, are independent of each other.
 */

/** Limits in days; left out: access never lapses. */
export interface AccessPolicy {
  maxDaysWithoutSignIn?: number;
  keyMaxDays?: number;
}

export const dayMs = 86_400_000;

/** How long before the lapse people are warned: a week, or half of a limit shorter than two weeks. */
export function warningMs(days: number): number {
  return Math.min(7, days / 2) * dayMs;
}

/** What lapses when, in ms since 1970. */
export interface Lapse {
  at: number;
  state: 'far' | 'near' | 'lapsed';
}

/** When what began at `since` lapses, after so many days; undefined where there is no limit. */
export function lapseOf(since: number, days: number | undefined, now: number): Lapse | undefined {
  if (days === undefined) return undefined;
  const at = since + days * dayMs;
  if (at <= now) return { at, state: 'lapsed' };
  return { at, state: at - now <= warningMs(days) ? 'near' : 'far' };
}

/** `1 day`, `90 days`. */
export function daysText(days: number | undefined): string {
  return days === 1 ? '1 day' : `${days} days`;
}

export interface OwnAccess {
  /** When the person last signed in. */
  signedInAt: number;
  /** Their active keys. */
  keys: readonly { fingerprint: string; registeredAt: number }[];
}

/** What a person should know of what has lapsed or is about to, a sentence each. */
export function lapseNotices(own: OwnAccess, policy: AccessPolicy, now: number): string[] {
  const signIn = lapseOf(own.signedInAt, policy.maxDaysWithoutSignIn, now);
  const notices: string[] = [];
  const limit = daysText(policy.maxDaysWithoutSignIn);
  if (signIn?.state === 'lapsed')
    notices.push(`You have not signed in for ${limit}: SSH and Kubernetes access have lapsed. ${again}`);
  if (signIn?.state === 'near')
    notices.push(
      `Your SSH and Kubernetes access lapse ${text(signIn.at)}, ${limit} after your last sign-in. Sign in again before that: andromeda auth login`,
    );
  for (const { fingerprint, registeredAt } of own.keys) {
    const key = lapseOf(registeredAt, policy.keyMaxDays, now);
    if (!key || key.state === 'far') continue;
    const when = key.state === 'lapsed' ? 'has lapsed' : `lapses ${text(key.at)}`;
    notices.push(
      `The SSH key ${fingerprint} ${when}: keys are good for ${daysText(policy.keyMaxDays)}. Register another one: andromeda keys add FILE`,
    );
  }
  return notices;
}

const again = 'Sign in, and they come back: andromeda auth login';

function text(at: number): string {
  return `on ${new Date(at).toISOString().slice(0, 16).replace('T', ' at ')} UTC`;
}

/** For so many days without a login a key counts as used. */
const unusedDays = 90;

/** Why an active key is worth a look: it was never used, or not for a long time. Undefined for one in use, and for a new one. */
export function disuseOf(
  { createdAt, lastUsedAt }: { createdAt: string; lastUsedAt: string | null | undefined },
  now: number,
): 'never used' | `not used for ${number} days` | undefined {
  const days = Math.floor((now - Date.parse(lastUsedAt ?? createdAt)) / dayMs);
  if (lastUsedAt == null) return days < 1 ? undefined : 'never used';
  return days < unusedDays ? undefined : `not used for ${days} days`;
}

/**
 * Lapsing of access: of people who have not signed in for long, and of old SSH keys. Nothing is removed: a sign-in,
 * or a new key, restores access. The two limits are independent of each other.
 */

/** The configured access policy; an absent limit means no limit. */
export interface AccessPolicy {
  /** How long SSH and Kubernetes access last after a sign-in. An organization can set a shorter time. */
  maxHoursWithoutSignIn?: number;
  /** Whether a lapse also ends open SSH sessions; absent: they stay open. */
  endOpenSessions?: boolean;
  keyMaxDays?: number;
  /** Months after which members' permissions are reviewed; absent: never. */
  reviewMonths?: number;
  signInUrl?: string;
  /** Whether keys of security keys are accepted; absent: no. */
  securityKeys?: boolean;
  /** Who must use a security key: people with any staff key; absent: no one. */
  requireSecurityKeys?: 'staff';
}

export const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** The lifetime of a person's sign-in and the rest of it, in ms; negative after the lapse. */
export interface SignInWindow {
  ms: number;
  leftMs: number;
}

export function signInMs(
  { maxHoursWithoutSignIn: all }: AccessPolicy,
  own?: number | null,
): number | undefined {
  const hours = Math.min(all ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(hours) ? hours * hourMs : undefined;
}

/** How long before an end the warning begins: a week, or half of a term shorter than two weeks. All in ms. */
export function warningMs(ms: number): number {
  return Math.min(7 * dayMs, ms / 2);
}

/** The warning time before a sign-in lapses; none for one that is due every day or two, which people expect. */
export function signInWarningMs(ms: number): number {
  return ms < 2 * dayMs ? 0 : warningMs(ms);
}

/** `12 hours`, `90 days`. */
export function periodText(ms: number): string {
  const [count, unit] = ms % dayMs === 0 ? [ms / dayMs, 'day'] : [Number((ms / hourMs).toFixed(2)), 'hour'];
  return count === 1 ? `1 ${unit}` : `${count} ${unit}s`;
}

/** How to renew a lapsed sign-in, as the end of a sentence. */
export function signInAdvice({ signInUrl }: AccessPolicy): string {
  return signInUrl === undefined ? 'with `andromeda auth login`' : `at ${signInUrl}`;
}

export interface OwnAccess {
  signIn: SignInWindow | undefined;
  keys: readonly { fingerprint: string; registeredAt: number }[];
}

/** Notices to a person about lapsed and lapsing access, a sentence each. */
export function lapseNotices({ signIn, keys }: OwnAccess, policy: AccessPolicy, now: number): string[] {
  const notices: string[] = [];
  if (signIn && signIn.leftMs <= 0)
    notices.push(
      `You have not signed in for ${periodText(signIn.ms)}: SSH and Kubernetes access have lapsed. Sign in ${signInAdvice(policy)}, and they come back.`,
    );
  else if (signIn && signIn.leftMs <= signInWarningMs(signIn.ms))
    notices.push(
      `Your SSH and Kubernetes access lapse ${text(now + signIn.leftMs)}, ${periodText(signIn.ms)} after your last sign-in. Sign in again before that: andromeda auth login`,
    );
  if (policy.keyMaxDays === undefined) return notices;
  const maxMs = policy.keyMaxDays * dayMs;
  for (const { fingerprint, registeredAt } of keys) {
    const at = registeredAt + maxMs;
    if (at - now > warningMs(maxMs)) continue;
    const when = at <= now ? 'has lapsed' : `lapses ${text(at)}`;
    notices.push(
      `The SSH key ${fingerprint} ${when}: keys are good for ${periodText(maxMs)}. Register another one: andromeda keys add FILE`,
    );
  }
  return notices;
}

function text(at: number): string {
  return `on ${new Date(at).toISOString().slice(0, 16).replace('T', ' at ')} UTC`;
}

/** A key without a login for this many days counts as unused. */
const unusedDays = 90;

/** The disuse of an active key, for a warning: never used, or not for a long time. Undefined for a key in use and for a new one. */
export function disuseOf(
  { createdAt, lastUsedAt }: { createdAt: string; lastUsedAt: string | null | undefined },
  now: number,
): 'never used' | `not used for ${number} days` | undefined {
  const days = Math.floor((now - Date.parse(lastUsedAt ?? createdAt)) / dayMs);
  if (lastUsedAt == null) return days < 1 ? undefined : 'never used';
  return days < unusedDays ? undefined : `not used for ${days} days`;
}

/** Permissions that end by themselves: which are held until when, and who may grant them for how long. */
import { forbidden, invalidState } from '../error.ts';
import { warningMs } from './lapse.ts';
import { closureOf, type Role } from './permission.ts';

export interface GrantedPermission {
  key: string;
  /** RFC 3339 in UTC, from which on it is not held; null: it has no end. */
  expiresAt: string | null;
}

/** The later of two ends; null is the latest. */
export function laterEnd(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return null;
  return one > other ? one : other;
}

/** Every key that is held, inclusions followed, with its end. */
export interface Holdings {
  has(key: string): boolean;
  endOf(key: string): string | null;
}

/** What an owner and an admin hold has no end. */
export function heldUntil(role: Role, granted: readonly GrantedPermission[]): Holdings {
  const ends = new Map<string, string | null>();
  for (const { key, expiresAt } of granted) {
    for (const held of closureOf([key])) {
      const before = ends.get(held);
      ends.set(held, before === undefined ? expiresAt : laterEnd(before, expiresAt));
    }
  }
  if (role !== 'member') return { has: () => true, endOf: () => null };
  return { has: (key) => ends.has(key), endOf: (key) => ends.get(key) ?? null };
}

/**
 * Throws `forbidden` where someone who holds `held` may not give `wanted` to a member who has `before`: what is added, or
 * goes on for longer, they must hold themselves for at least as long.
 */
export function requireMayGrant(
  held: Holdings,
  before: readonly GrantedPermission[],
  wanted: readonly GrantedPermission[],
): void {
  const had = new Map(before.map(({ key, expiresAt }) => [key, expiresAt]));
  for (const { key, expiresAt } of wanted) {
    const earlier = had.get(key);
    if (earlier !== undefined && laterEnd(earlier, expiresAt) === earlier) continue;
    if (!held.has(key)) throw forbidden(`You cannot grant ${key}, which you do not hold.`);
    const end = held.endOf(key);
    if (laterEnd(end, expiresAt) !== end) {
      throw forbidden(
        `You hold ${key} until ${endText(end ?? '')} yourself, and cannot grant it for longer.`,
      );
    }
  }
}

/** For so long after its end a key is not given anew by a set that says nothing of its end: the set may be older than the end. */
export const endStaysMs = 86_400_000;

/** Throws `invalid_state` where a set names a key that has `ended` lately, and no end for it. */
export function requireEndSaid(
  keys: readonly string[],
  ends: ReadonlyMap<string, string | null>,
  ended: readonly GrantedPermission[],
): void {
  for (const { key, expiresAt } of ended) {
    if (!keys.includes(key) || ends.has(key)) continue;
    throw invalidState(
      `${key} ended at ${endText(expiresAt ?? '')}. Say in expires_at until when it is given again, or null to give it for good.`,
    );
  }
}

/**
 * Notices to a member about permissions that end soon, a sentence for each end time; none for a permission that another key
 * keeps. They begin a week before the end, or in the second half of a term shorter than two weeks, counted from `since`: when
 * the membership last changed. The end that a review gave (`reviewed`) is said from the beginning.
 */
export function endNotices(
  {
    organization,
    since,
    granted,
    reviewed,
  }: {
    organization: string;
    since: string;
    granted: readonly GrantedPermission[];
    reviewed: string;
  },
  now: number,
): string[] {
  const held = heldUntil('member', granted);
  const ending = new Map<string, string[]>();
  for (const { key, expiresAt } of granted) {
    if (expiresAt === null || held.endOf(key) !== expiresAt) continue;
    const end = Date.parse(expiresAt);
    if (expiresAt !== reviewed && end - now > warningMs(end - Date.parse(since))) continue;
    ending.set(expiresAt, [...(ending.get(expiresAt) ?? []), key]);
  }
  return [...ending].sort().map(([end, keys]) => {
    const verb = keys.length === 1 ? 'ends' : 'end';
    const unless = end === reviewed ? `, unless an owner keeps ${keys.length === 1 ? 'it' : 'them'}` : '';
    return `Your ${keys.join(', ')} in ${organization} ${verb} at ${endText(end)}${unless}. Ask for more time before that: andromeda access request ${keys.join(' ')}`;
  });
}

/** The ends of those that have one, by key, as the API shows them; undefined where none has. */
export function endsOf(granted: readonly GrantedPermission[]): Record<string, string> | undefined {
  const ends = granted.flatMap(({ key, expiresAt }) =>
    expiresAt === null ? [] : [[key, expiresAt] as const],
  );
  return ends.length === 0 ? undefined : Object.fromEntries(ends);
}

/** `clusters.read, clusters.ssh until 2030-01-01 09:00 UTC`; `none`. */
export function grantedText(granted: readonly GrantedPermission[]): string {
  const texts = granted.map(({ key, expiresAt }) =>
    expiresAt === null ? key : `${key} until ${endText(expiresAt)}`,
  );
  return texts.join(', ') || 'none';
}

/** `2030-01-01 09:00 UTC` */
export function endText(at: string): string {
  return `${at.slice(0, 16).replace('T', ' ')} UTC`;
}

export function isSameSet(one: readonly GrantedPermission[], other: readonly GrantedPermission[]): boolean {
  const ends = new Map(other.map(({ key, expiresAt }) => [key, expiresAt]));
  return ends.size === one.length && one.every(({ key, expiresAt }) => ends.get(key) === expiresAt);
}

/** Keys without an end, each once. */
export function forGood(keys: readonly string[]): GrantedPermission[] {
  return [...new Set(keys)].sort().map((key) => ({ key, expiresAt: null }));
}

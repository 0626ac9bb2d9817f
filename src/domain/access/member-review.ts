/**
 * Reviews of members' access. Every so many months, owners are asked to confirm what a member was given by hand and for good.
 * What they do not confirm within 30 days gets an end in another 30, like any other permission that ends. Roles are not reviewed:
 * an organization could lose its last owner.
 */
import type { Membership } from '../organizations/membership.ts';
import { dayMs } from './lapse.ts';
import type { GrantedPermission } from './permission-end.ts';

/** For so long owners are asked, before an end is given; and that end is so far ahead. */
export const reviewMs = 30 * dayMs;
export const monthMs = (365.25 / 12) * dayMs;

/** What a review knows of a member; times in ms since 1970. */
export interface ReviewState {
  /** When their access was confirmed last, or else when they became a member. */
  since: number;
  askedAt: number | undefined;
  /** The end that the last missed review gave, past or to come. */
  endsAt: number | undefined;
  /** Whether people gave them anything that has no end. */
  holdsForGood: boolean;
}

/**
 * What is next: owners are asked to confirm, what the member holds gets an end, or the question is dropped; undefined: nothing.
 * The 30 days count from when owners were really asked, and not from a date before the setting, a stop or a jump of the clock.
 */
export function reviewStep(
  { since, askedAt, endsAt, holdsForGood }: ReviewState,
  months: number | undefined,
  now: number,
): 'ask' | 'end' | 'drop' | undefined {
  if (endsAt !== undefined && endsAt > now) return undefined;
  const isAsked = askedAt !== undefined && endsAt === undefined;
  const from = Math.max(since, endsAt ?? 0);
  const isDue = holdsForGood && months !== undefined && from + months * monthMs <= now;
  // A clock that was set back.
  if (!isDue || (isAsked && askedAt > now)) return isAsked ? 'drop' : undefined;
  if (!isAsked) return 'ask';
  return askedAt + reviewMs <= now ? 'end' : undefined;
}

/** Until when owners can confirm what a member holds, before it gets an end or, with one, before that; undefined: they are not asked. */
export function confirmBy(
  { reviewAskedAt: askedAt, reviewEndsAt: endsAt }: Pick<Membership, 'reviewAskedAt' | 'reviewEndsAt'>,
  held: readonly GrantedPermission[],
): string | undefined {
  if (askedAt === null || !held.some(({ expiresAt }) => expiresAt === endsAt)) return undefined;
  return endsAt ?? new Date(Date.parse(askedAt) + reviewMs).toISOString();
}

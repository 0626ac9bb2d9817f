/**
 * Reviews of members' access. So many months after people last changed what a member holds by hand, all of it that has no end gets
 * one, 30 days ahead. Owners keep it as they change any other end. Roles are not reviewed: an organization could lose its last owner.
 */
import { dayMs } from './lapse.ts';
import type { GrantedPermission } from './permission-end.ts';

/** So far ahead is the end that a review gives. */
export const reviewMs = 30 * dayMs;
export const monthMs = (365.25 / 12) * dayMs;

/** Until when owners can keep what the last review gave an end; undefined: there is nothing of it. `from`: `Membership.reviewFrom`. */
export function keepBy(from: string, held: readonly GrantedPermission[]): string | undefined {
  return held.some(({ expiresAt }) => expiresAt === from) ? from : undefined;
}

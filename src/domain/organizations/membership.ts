/** Organizations, and what holds for their members, whatever changes. */
import type { Role } from '../access/permission.ts';
import { invalidRequest, invalidState } from '../error.ts';
import { isUsername } from '../people/person.ts';
import { cutText } from '../text.ts';

export interface Organization {
  id: string;
  slug: string;
  displayName: string;
  lifecycleState: 'active' | 'retired';
  createdByUserId: string;
  createdAt: string;
  updatedAt: string;
  /** How long access of its members lasts without a sign-in; null: as long as the installation says. */
  maxHoursWithoutSignIn: number | null;
}

export interface Membership {
  organizationId: string;
  userId: string;
  email: string;
  role: Role;
  lifecycleState: 'active';
  createdAt: string;
  updatedAt: string;
  /** The last change by hand of what they hold, or the end that the last review gave, also to come; see `member-review.ts`. */
  reviewFrom: string;
  username: {
    id: string;
    username: string;
    source: string;
    lifecycleState: 'reserved' | 'frozen';
    createdAt: string;
    frozenAt: string | null;
  };
}

/** Throws `invalid_state` when an organization that is not retired would be left with this many owners: none. */
export function checkOwners({ isRetired, owners }: { isRetired: boolean; owners: number }): void {
  if (isRetired || owners > 0) return;
  throw invalidState('This is the last owner. Make someone else an owner first.');
}

/** A login name of an organization, and whether it was used on a cluster: then it is its person's for good. */
export interface HeldUsername {
  username: string;
  isFrozen: boolean;
}

/**
 * Throws where a person who holds the name `own` (undefined: none yet) cannot have `wanted`: `invalid_state` when theirs is
 * frozen or the wanted one is, or was, another person's, `invalid_request` when it cannot be a login name.
 */
export function checkUsername(
  wanted: string,
  { own, isTaken }: { own: HeldUsername | undefined; isTaken: boolean },
): void {
  if (own?.username === wanted) return;
  if (own?.isFrozen) {
    throw invalidState(
      `The username ${own.username} has been used on a cluster and cannot be changed any more.`,
    );
  }
  if (!isUsername(wanted)) {
    throw invalidRequest(
      `"${cutText(wanted, 80)}" cannot be a username: 1 to 32 characters, a lowercase letter first, then lowercase letters, digits, _ or -, and not an account that systems have for themselves.`,
    );
  }
  if (isTaken) {
    throw invalidState(`The username ${wanted} is, or was, another person's here.`);
  }
}

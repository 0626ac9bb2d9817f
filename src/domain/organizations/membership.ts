/** Organizations and memberships, and the invariants that every change must keep. */
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
  /** How long members' access lasts without a sign-in; null: the installation's limit. */
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
  /** The last manual change of permissions, or the end that the last review gave, maybe in the future; see `member-review.ts`. */
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

/** A login name in an organization; frozen once it was used on a cluster, and then its person's forever. */
export interface HeldUsername {
  username: string;
  isFrozen: boolean;
}

/**
 * Throws if a person whose login name is `own` (undefined: none yet) cannot have `wanted`: `invalid_state` if theirs
 * is frozen or the wanted one is or was another person's, `invalid_request` for an invalid login name.
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

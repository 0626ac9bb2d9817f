/** Organizations, memberships and teams, and the invariants that every change must keep. */
import type { Role } from '../access/permission.ts';
import { invalidRequest, invalidState } from '../error.ts';
import { isUsername, usernameRule } from '../people/person.ts';
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
    throw invalidRequest(`"${cutText(wanted, 80)}" cannot be a username: ${usernameRule}.`);
  }
  if (isTaken) {
    throw invalidState(`The username ${wanted} is, or was, another person's or a team's here.`);
  }
}

/** A POSIX group on an organization's Slurm clusters, with a number that it keeps for good. */
export interface Team {
  name: string;
  gid: number;
  /** Everyone in the organization is in it, and `members` is empty. */
  isWhole: boolean;
  members: readonly { userId: string; email: string; username: string }[];
}

/** A team as hosts get it. */
export interface ManifestGroup extends Pick<Team, 'name' | 'gid'> {
  /** Login names. */
  members: readonly string[];
}

/** The limit on teams of an organization: file servers and Slurm have limits on a person's groups too. */
export const mostTeams = 200;

/** Throws `invalid_request` for a name that no team can have. */
export function checkTeamName(name: string): void {
  if (isUsername(name)) return;
  throw invalidRequest(`"${cutText(name, 80)}" cannot be a team: ${usernameRule}.`);
}

/** The name of the group that everyone in an organization is in. */
export function groupNameOf(slug: string): string {
  const name = slug.slice(0, 32);
  return isUsername(name) ? name : `${slug.slice(0, 28)}-all`;
}

/** The tables of who belongs to an organization, by which login name, and what they were granted. */

export interface MembershipTable {
  org_id: string;
  user_id: string;
  role: 'owner' | 'admin' | 'member';
  lifecycle_state: 'active' | 'removed';
  created_at: string;
  updated_at: string;
}

export interface MemberPermissionTable {
  org_id: string;
  user_id: string;
  permission: string;
  /** From here on it is held no more, though the row stays; null: it has no end. */
  expires_at: string | null;
}

/** Triggers raise it with whatever is in an organization's lists of members, whoever writes; one without has no members. */
export interface MemberVersionTable {
  org_id: string;
  version: number;
}

/**
 * One row a person and organization, never deleted: a frozen name is never given to anyone else, and the uid (also
 * the gid), allocated on the first accepted list, stays theirs for good.
 */
export interface OrganizationUsernameTable {
  id: string;
  org_id: string;
  user_id: string;
  username: string;
  source: string;
  lifecycle_state: 'reserved' | 'frozen';
  uid: number | null;
  created_at: string;
  frozen_at: string | null;
}

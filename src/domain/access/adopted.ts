/** Accounts that a cluster had before us, and that are ours by now. */

/** `isPrivileged`: hosts adopted it also where it may become root. */
export type FormerAccount = { username: string; uid: number; gid: number; isPrivileged?: boolean };

/** What a release does: accounts of people with access get back what they had, and those of others are locked. */
export interface ReleasedAccounts {
  handBack?: readonly string[];
  former?: readonly FormerAccount[];
}

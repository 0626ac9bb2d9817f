/** The account that an installation runs as, for root's commands. */
import { statSync } from 'node:fs';
import { findHostEntry } from '../../../lib/host-ids.ts';

/**
 * Switches root for good to the account that owns the installation: checks then see what that account may read, and
 * no file is made that it could not use.
 */
export function becomeOwnerOf(dataDir: string): void {
  const owner = statSync(dataDir, { throwIfNoEntry: false });
  if (process.getuid?.() !== 0 || !owner || owner.uid === 0) return;
  // Includes groups from directories (LDAP). Node's types leave it out.
  const { initgroups } = process as { initgroups?: (user: number, group: number) => void };
  try {
    initgroups?.(owner.uid, owner.gid);
  } catch {
    // The account has no name, as in a container that is given any UID.
    process.setgroups?.([]);
  }
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
}

export function accountName(uid: number): string {
  return findHostEntry('passwd', String(uid))?.[0] ?? `user ${uid}`;
}

/** What applying a manifest restarts on a Slurm cluster (contract, "Access-change restart rules"). */
import type { ManifestAccount } from './manifest.ts';

type LoginAccount = Pick<ManifestAccount, 'username' | 'loginState'>;

export interface RestartPlan {
  added: string[];
  removed: string[];
  /** In order. Services of the first group restart together, then the compute nodes one at a time. */
  restarts: readonly ('login' | 'controller' | 'accounting' | 'compute')[];
}

/**
 * The plan for going from one set of accounts to another. A login account exists for a person who has access and an
 * active key: only when one appears or disappears does anything restart.
 */
export function restartPlan(before: readonly LoginAccount[], after: readonly LoginAccount[]): RestartPlan {
  const had = loginAccounts(before);
  const wants = loginAccounts(after);
  const added = [...wants].filter((username) => !had.has(username));
  const removed = [...had].filter((username) => !wants.has(username));
  const changed = added.length + removed.length > 0;
  return { added, removed, restarts: changed ? ['login', 'controller', 'accounting', 'compute'] : [] };
}

function loginAccounts(accounts: readonly LoginAccount[]): Set<string> {
  return new Set(
    accounts.filter((account) => account.loginState === 'ready').map((account) => account.username),
  );
}

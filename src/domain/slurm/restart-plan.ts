/** What applying a manifest restarts on a Slurm cluster (contract, "Access-change restart rules"). */
import type { ManifestAccount } from '../access/manifest.ts';
import { changedFields, type SlurmConfiguration } from './configuration.ts';

type LoginAccount = Pick<ManifestAccount, 'username' | 'loginState'>;

export interface RestartPlan {
  added: string[];
  removed: string[];
  /** In order. Services of the first group restart together, then the compute nodes one at a time. */
  restarts: readonly ('login' | 'controller' | 'accounting' | 'compute')[];
}

export interface ConfigurationChange {
  before: SlurmConfiguration;
  after: SlurmConfiguration;
}

/**
 * The plan for going from one set of accounts to another. A login account exists for a person who has access and an
 * active key: only when one appears or disappears does everything restart. Another Slurm configuration restarts login
 * nodes and the controller, and compute nodes only for what they run when they start.
 */
export function restartPlan(
  before: readonly LoginAccount[],
  after: readonly LoginAccount[],
  configuration: ConfigurationChange = { before: {}, after: {} },
): RestartPlan {
  const had = loginAccounts(before);
  const wants = loginAccounts(after);
  const added = [...wants].filter((username) => !had.has(username));
  const removed = [...had].filter((username) => !wants.has(username));
  if (added.length + removed.length > 0) {
    return { added, removed, restarts: ['login', 'controller', 'accounting', 'compute'] };
  }
  const changed = changedFields(configuration.before, configuration.after);
  if (changed.length === 0) return { added, removed, restarts: [] };
  const isComputeToo = changed.includes('computeS6Packages');
  return {
    added,
    removed,
    restarts: isComputeToo ? ['login', 'controller', 'compute'] : ['login', 'controller'],
  };
}

function loginAccounts(accounts: readonly LoginAccount[]): Set<string> {
  return new Set(
    accounts.filter((account) => account.loginState === 'ready').map((account) => account.username),
  );
}

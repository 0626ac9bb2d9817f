/** The restarts that applying a manifest causes on a Slurm cluster (contract, "Access-change restart rules"). */
import type { ManifestAccount } from '../access/manifest.ts';
import { changedFields, type SlurmConfiguration } from './configuration.ts';

type LoginAccount = Pick<ManifestAccount, 'username' | 'loginState' | 'isAdopted'>;

export interface RestartPlan {
  added: string[];
  removed: string[];
  /** In order: the services of the first group restart together, then the compute nodes one at a time. */
  restarts: readonly ('login' | 'controller' | 'accounting' | 'compute')[];
}

export interface ConfigurationChange {
  before: SlurmConfiguration;
  after: SlurmConfiguration;
}

/**
 * The restarts for a change from one set of accounts to another. A person has a login account while they have access
 * and an active key; everything restarts only when such an account appears or disappears. One that is adopted was there before. A new Slurm configuration
 * restarts login nodes and the controller, and compute nodes only if their start-up packages changed.
 */
export function restartPlan(
  before: readonly LoginAccount[],
  after: readonly LoginAccount[],
  configuration: ConfigurationChange = { before: {}, after: {} },
): RestartPlan {
  const had = loginAccounts(before);
  const wants = loginAccounts(after);
  const adopted = loginAccounts(after.filter(({ isAdopted }) => isAdopted));
  const added = [...wants].filter((username) => !had.has(username) && !adopted.has(username));
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

/** What a new list of accounts changes on a simulated cluster: restarts, and who can log in. */
import type { ManifestAccount } from '../../../domain/manifest.ts';
import { type RestartPlan, restartPlan } from '../../../domain/restart-plan.ts';
import { type KnownAccount, type Logins, loginsOf } from './state.ts';

interface AccountChange {
  plan: RestartPlan;
  /** Who can log in now, where that is someone else than before, or someone with another shell. */
  logins: Logins | undefined;
}

const compared = new WeakMap<
  readonly ManifestAccount[],
  { before: WeakRef<readonly KnownAccount[]>; change: AccountChange }
>();

/** The plan for the accounts. Cached, as all clusters of an organization need the same. */
export function compareAccounts(
  before: readonly KnownAccount[],
  after: readonly ManifestAccount[],
): AccountChange {
  const cached = compared.get(after);
  if (cached?.before.deref() === before) return cached.change;
  const logins = hasOtherLogins(before, after) ? loginsOf(after.filter(isReady)) : undefined;
  const change = { plan: restartPlan(before, after), logins };
  compared.set(after, { before: new WeakRef(before), change });
  return change;
}

/** A person without an active key has no usable account. */
export function isReady(account: KnownAccount): boolean {
  return account.loginState === 'ready';
}

function hasOtherLogins(before: readonly KnownAccount[], after: readonly KnownAccount[]): boolean {
  const had = before.filter(isReady);
  const has = after.filter(isReady);
  if (had.length !== has.length) return true;
  return has.some((account, index) => {
    const other = had[index];
    if (account === other) return false;
    return account.username !== other?.username || account.uid !== other.uid || account.shell !== other.shell;
  });
}

/** Finds accounts that a simulated login node cannot have, because this machine already uses their uid or name. */
import type { AccountReport, ManifestAccount } from '../../domain/access/manifest.ts';

/** By uid: the machine's account of that uid or name, as a phrase. Accounts without a conflict are left out. */
export type FindOwners = (accounts: readonly ManifestAccount[]) => Promise<ReadonlyMap<number, string>>;

export interface ForeignAccounts {
  accounts: readonly ManifestAccount[];
  /** A message that asks a person to mend it; null when there is none. This name is in the state on disk. */
  words: string | null;
}

export const noForeign: Readonly<ForeignAccounts> = { accounts: [], words: null };

const mostNamed = 3;

/** Finds the conflicts of accounts that people can log in to. */
export async function findForeign(
  among: readonly ManifestAccount[],
  findOwners: FindOwners | undefined,
): Promise<ForeignAccounts> {
  const ready = among.filter(({ loginState }) => loginState === 'ready');
  if (ready.length === 0 || !findOwners) return noForeign;
  const owners = await findOwners(ready);
  const accounts = ready.filter(({ uid }) => owners.has(uid));
  if (accounts.length === 0) return noForeign;
  const named = accounts
    .slice(0, mostNamed)
    .map(({ username, uid }) => `${username} (number ${uid}), as this machine has ${owners.get(uid)}`);
  const more = accounts.length > mostNamed ? `, and ${accounts.length - mostNamed} more` : '';
  return {
    accounts,
    words: `There is no login for: ${named.join('; ')}${more}. Change that there.`,
  };
}

/** The report on an account that is wanted on the cluster and missing. */
export function withoutAccount({ userId, shell }: ManifestAccount): AccountReport {
  return { userId, shell, loginState: 'waiting_for_key', keySetGeneration: 0, keyFingerprints: [] };
}

/** Accounts that a simulated login node cannot have, because this machine has their number or their name already. */
import type { AccountReport, ManifestAccount } from '../../domain/access/manifest.ts';

/** By uid: what this machine has of that number or name, as a phrase; those that are free are left out. */
export type FindOwners = (accounts: readonly ManifestAccount[]) => Promise<ReadonlyMap<number, string>>;

export interface Foreign {
  accounts: readonly ManifestAccount[];
  /** What a person must mend, as a sentence; null where there are none. The name is that of the state on disk. */
  words: string | null;
}

export const noForeign: Readonly<Foreign> = { accounts: [], words: null };

const mostNamed = 3;

/** Those among the accounts that can be used. */
export async function findForeign(
  among: readonly ManifestAccount[],
  findOwners: FindOwners | undefined,
): Promise<Foreign> {
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

/** The report on an account that should be on the cluster and is not. */
export function withoutAccount({ userId, shell }: ManifestAccount): AccountReport {
  return { userId, shell, loginState: 'waiting_for_key', keySetGeneration: 0, keyFingerprints: [] };
}

/** Accounts that a simulated login node cannot have, because somebody else on this machine has their number. */
import type { AccountReport, ManifestAccount } from '../../../domain/manifest.ts';

/** By uid: who has the number on this machine already, as a phrase; a free number is left out. */
export type FindOwners = (accounts: readonly ManifestAccount[]) => Promise<ReadonlyMap<number, string>>;

export interface Foreign {
  accounts: readonly ManifestAccount[];
  /** What a person must mend, as a sentence; null where there are none. The name is that of the state on disk. */
  words: string | null;
}

export const nobody: Readonly<Foreign> = { accounts: [], words: null };

const mostNamed = 3;

/** Those among the accounts that can be used. */
export async function findForeign(
  among: readonly ManifestAccount[],
  findOwners: FindOwners | undefined,
): Promise<Foreign> {
  const ready = among.filter(({ loginState }) => loginState === 'ready');
  if (ready.length === 0 || !findOwners) return nobody;
  const owners = await findOwners(ready);
  const accounts = ready.filter(({ uid }) => owners.has(uid));
  if (accounts.length === 0) return nobody;
  const named = accounts
    .slice(0, mostNamed)
    .map(
      ({ username, uid }) =>
        `${username} has the number ${uid}, which belongs to ${owners.get(uid)} of this machine`,
    );
  const more = accounts.length > mostNamed ? `, and ${accounts.length - mostNamed} more` : '';
  return {
    accounts,
    words: `There is no login for: ${named.join('; ')}${more}. Give that another number there.`,
  };
}

/** As a cluster reports somebody whose account should be there and is not. */
export function withoutAccount({ userId, shell }: ManifestAccount): AccountReport {
  return { userId, shell, loginState: 'waiting_for_key', keySetGeneration: 0, keyFingerprints: [] };
}

/** Accounts that hosts of a cluster had before us: known here too, as a host that is installed anew knows nothing of them. */
import type { FormerAccount, Manifest } from '../../domain/access/manifest.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { insertRow, listRows } from '../engine/rows.ts';

/**
 * Records the accounts of a manifest that its hosts may adopt; call it before they get the manifest. Returns those adopted before whose
 * people are to have no account now.
 */
export async function recordAdopted(
  store: Store,
  { clusterId, accounts }: Pick<Manifest, 'clusterId' | 'accounts'>,
): Promise<FormerAccount[]> {
  const rows = await listRows(store.read, 'adopted_accounts', { cluster_id: clusterId }, 'user_id');
  const ready = accounts.filter(({ loginState }) => loginState === 'ready');
  const known = new Set(rows.map((row) => row.user_id));
  const added = ready.filter(({ isAdopted, userId }) => isAdopted && !known.has(userId));
  if (added.length > 0)
    await store.write(async ({ db }) => {
      for (const { userId, username, uid, gid } of added) {
        const row = { cluster_id: clusterId, user_id: userId, username, uid, gid, hand_back: 0 };
        await insertRow(db, 'adopted_accounts', row);
      }
    });
  const present = new Set(ready.map(({ userId }) => userId));
  return rows
    .filter((row) => !present.has(row.user_id))
    .map(({ username, uid, gid }) => ({ username, uid, gid }));
}

/** Marks the accounts that a release hands back: those of members who had access to the cluster. */
export async function markHandBack({ db }: Tx, clusterId: string): Promise<void> {
  await db
    .updateTable('adopted_accounts')
    .set({ hand_back: 1 })
    .where('cluster_id', '=', clusterId)
    .where('user_id', 'in', (eb) =>
      eb
        .selectFrom('clusters as c')
        .innerJoin('memberships as m', 'm.org_id', 'c.organization_id')
        .innerJoin('access_list_users as l', (join) =>
          join.onRef('l.org_id', '=', 'm.org_id').onRef('l.user_id', '=', 'm.user_id'),
        )
        .select('m.user_id')
        .where('c.id', '=', clusterId)
        .where('l.until_version', 'is', null)
        .where('m.lifecycle_state', '=', 'active'),
    )
    .execute();
}

export async function listHandBacks(db: Reader, clusterId: string): Promise<string[]> {
  const rows = await listRows(db, 'adopted_accounts', { cluster_id: clusterId, hand_back: 1 }, 'username');
  return rows.map(({ username }) => username);
}

/** Accounts that hosts of a cluster had before us: known here too, as a host that is installed anew knows nothing of them. */
import type { FormerAccount, ReleasedAccounts } from '../../domain/access/adopted.ts';
import type { Manifest } from '../../domain/access/manifest.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { listRows, saveRow } from '../engine/rows.ts';
import type { Schema } from '../generated/schema.ts';

/**
 * Records the accounts that hosts may adopt; call it before they get the manifest. Returns those adopted before whose people are to have
 * none now. One that `adoptPrivileged` names stays privileged for good, as the name goes from the settings with the person.
 */
export async function recordAdopted(
  store: Store,
  { clusterId, accounts }: Pick<Manifest, 'clusterId' | 'accounts'>,
  adoptPrivileged: readonly string[] = [],
): Promise<FormerAccount[]> {
  const rows = await listRows(store.read, 'adopted_accounts', { cluster_id: clusterId }, 'user_id');
  const ready = accounts.filter(({ loginState }) => loginState === 'ready');
  const known = new Map(rows.map((row) => [row.user_id, row]));
  const news = ready.filter(({ isAdopted, userId, username }) => {
    const row = known.get(userId);
    return isAdopted && (!row || (row.privileged === 0 && adoptPrivileged.includes(username)));
  });
  if (news.length > 0)
    await store.write(async ({ db }) => {
      for (const { userId, username, uid, gid } of news) {
        const privileged = adoptPrivileged.includes(username) ? 1 : 0;
        const row = { cluster_id: clusterId, user_id: userId, username, uid, gid, privileged, hand_back: 0 };
        await saveRow(db, 'adopted_accounts', ['cluster_id', 'user_id'], row);
      }
    });
  const present = new Set(ready.map(({ userId }) => userId));
  return rows.filter((row) => !present.has(row.user_id)).map(formerOf);
}

function formerOf({ username, uid, gid, privileged }: Schema['adopted_accounts']): FormerAccount {
  return { username, uid, gid, isPrivileged: privileged === 1 };
}

/** The IDs of members who have access to the cluster. */
const withAccess = (db: Reader, clusterId: string) =>
  db
    .selectFrom('clusters as c')
    .innerJoin('memberships as m', 'm.org_id', 'c.organization_id')
    .innerJoin('access_list_users as l', (join) =>
      join.onRef('l.org_id', '=', 'm.org_id').onRef('l.user_id', '=', 'm.user_id'),
    )
    .select('m.user_id')
    .where('c.id', '=', clusterId)
    .where('l.until_version', 'is', null)
    .where('m.lifecycle_state', '=', 'active');

/** Marks the accounts that a release hands back: those of members who had access to the cluster. */
export async function markHandBack({ db }: Tx, clusterId: string): Promise<void> {
  await db
    .updateTable('adopted_accounts')
    .set({ hand_back: 1 })
    .where('cluster_id', '=', clusterId)
    .where('user_id', 'in', withAccess(db, clusterId))
    .execute();
}

/** Of those who left since the release began, too. */
export async function listReleased(db: Reader, clusterId: string): Promise<ReleasedAccounts> {
  const rows = await listRows(db, 'adopted_accounts', { cluster_id: clusterId }, 'username');
  const members = new Set((await withAccess(db, clusterId).execute()).map((row) => row.user_id));
  const present = rows.filter((row) => members.has(row.user_id));
  return {
    handBack: present.filter((row) => row.hand_back === 1).map(({ username }) => username),
    former: rows.filter((row) => !members.has(row.user_id)).map(formerOf),
  };
}

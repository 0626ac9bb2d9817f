/** The numbers of people whom a cluster has from the site's directory: the first ones that are seen stay theirs. */
import type { DirectoryNumber } from '../../domain/access/manifest.ts';
import type { Store } from '../engine/index.ts';
import { findRow, updateRows } from '../engine/rows.ts';
import { raiseVersion } from './access-list-users.ts';

/** Keeps the numbers of people who have none. The list's new version brings them to all hosts. */
export async function keepNumbers(
  store: Store,
  clusterId: string,
  numbers: readonly DirectoryNumber[],
): Promise<void> {
  await store.write(async (tx) => {
    const cluster = await findRow(tx.db, 'clusters', { id: clusterId });
    if (!cluster) return;
    const { organization_id: org_id } = cluster;
    let areNew = false;
    for (const { userId, uid, gid } of numbers) {
      const unnumbered = { org_id, user_id: userId, uid: null };
      const own = await findRow(tx.db, 'organization_usernames', unnumbered);
      // A former member's number is theirs for good.
      if (!own || (await findRow(tx.db, 'organization_usernames', { org_id, uid }))) continue;
      const kept = { uid, gid: gid === uid ? null : gid, given: 1 };
      await updateRows(tx.db, 'organization_usernames', unnumbered, kept);
      areNew = true;
    }
    if (!areNew) return;
    await raiseVersion(tx, org_id);
    tx.changed({ kind: 'cluster', clusterId });
  });
}

/** What the gateway tells of sessions, in the audit trail. */
import { type AuditEntry, appendAuditEntry } from './audit.ts';
import type { Store } from './index.ts';

export type SessionEntry = AuditEntry & { cluster_id: string };

/**
 * Adds entries to the trail, all or none, each with the organization of its cluster. It does not wait for the disk,
 * which would hold up everyone's keystrokes: a crash takes nothing back, and a power cut only the last few.
 */
export async function appendSessionEntries(store: Store, entries: readonly SessionEntry[]): Promise<void> {
  await store.write(
    async (tx) => {
      for (const entry of entries) {
        const cluster = await tx.db
          .selectFrom('clusters')
          .select('organization_id')
          .where('id', '=', entry.cluster_id)
          .executeTakeFirst();
        await appendAuditEntry(tx, { ...entry, organization_id: cluster?.organization_id ?? null });
      }
    },
    { flush: false },
  );
}

/** What the gateway tells of sessions, in the audit trail. */
import { type AuditEntry, appendAuditEntry } from './audit.ts';
import type { Store, Tx } from './index.ts';

export type SessionEntry = AuditEntry & { cluster_id: string };

/**
 * Adds entries to the trail, all or none, each with the organization of its cluster. It does not wait for the disk,
 * which would hold up everyone's keystrokes: a crash takes nothing back, and a power cut only the last few.
 */
export async function appendSessionEntries(store: Store, entries: readonly SessionEntry[]): Promise<void> {
  await store.write(
    async (tx) => {
      for (const entry of entries) await append(tx, entry);
    },
    { flush: false },
  );
}

/**
 * Closes in the trail, at `at` (RFC 3339), what was open when the service was cut off; returns how many sessions. To be
 * called before there are new ones.
 */
export async function closeLostSessions(store: Store, at: string): Promise<number> {
  return store.write(async (tx) => {
    const lost = await tx.db.selectFrom('open_sessions').select('entry').orderBy('id').execute();
    for (const { entry } of lost) {
      const opened = JSON.parse(entry) as SessionEntry;
      const details = `${opened.details}; opened ${opened.at}, ended before ${at}`;
      const reason = 'the service was cut off';
      await append(tx, { ...opened, at, operation: 'ssh.session.closed', reason, details });
    }
    return lost.length;
  });
}

async function append(tx: Tx, entry: SessionEntry): Promise<void> {
  const cluster = await tx.db
    .selectFrom('clusters')
    .select('organization_id')
    .where('id', '=', entry.cluster_id)
    .executeTakeFirst();
  await appendAuditEntry(tx, { ...entry, organization_id: cluster?.organization_id ?? null });
  if (entry.operation === 'ssh.session.opened') {
    const row = { id: entry.target, entry: JSON.stringify(entry) };
    await tx.db.insertInto('open_sessions').values(row).execute();
  } else if (entry.operation === 'ssh.session.closed') {
    await tx.db.deleteFrom('open_sessions').where('id', '=', entry.target).execute();
  }
}

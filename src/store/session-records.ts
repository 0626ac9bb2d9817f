/** What the gateway tells of sessions, in the audit trail and, of those that are over, in columns. */
import type { SessionEntry } from '../domain/audit.ts';
import type { AuditRecord } from '../domain/audit-text.ts';
import type { SshSession } from '../domain/ssh-session.ts';
import { appendAuditEntry } from './audit.ts';
import type { Reader, Store, Tx } from './index.ts';
import { addPastSession, deletePastSession } from './past-sessions.ts';

/** What is kept of an entry while its session is open, as JSON. */
export type Opened = Pick<
  AuditRecord,
  'at' | 'actor_user_id' | 'target' | 'subject_user_id' | 'source_address' | 'details'
> & {
  cluster_id: string;
  /** Left out by versions that kept no columns. */
  session?: SshSession;
};

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
 * Closes in the trail, at `at` (RFC 3339), what was open when the service was cut off, but for the sessions that are
 * `spared`, by ID, which are this server's from now on; returns how many. To be called before there are new ones. `before`:
 * what this server was called then, where others have sessions too.
 */
export async function closeLostSessions(
  store: Store,
  at: string,
  { spared, before }: { spared: ReadonlySet<string>; before?: readonly string[] | undefined },
): Promise<number> {
  return store.write(async (tx) => {
    const open = await tx.db
      .selectFrom('open_sessions')
      .select(['id', 'entry', 'server_id', 'presumed_seq'])
      .orderBy('id')
      .execute();
    const isOwn = (id: string | null) => !before || id === null || before.includes(id);
    const lost = open.filter(
      (row) => row.presumed_seq === null && isOwn(row.server_id) && !spared.has(row.id),
    );
    for (const { entry } of lost) await append(tx, endOf(entry, at, 'the service was cut off'));
    for (const { id } of open.filter((row) => spared.has(row.id)))
      await tx.db
        .updateTable('open_sessions')
        .set({ server_id: tx.server.id })
        .where('id', '=', id)
        .execute();
    return lost.length;
  });
}

/** The closing entry of a session of which only the opening one is known. */
export function endOf(opening: string, at: string, reason: string): SessionEntry {
  const opened = JSON.parse(opening) as Opened;
  return {
    at,
    actorUserId: opened.actor_user_id,
    operation: 'ssh.session.closed',
    target: opened.target,
    clusterId: opened.cluster_id,
    subjectUserId: opened.subject_user_id,
    reason,
    sourceAddress: opened.source_address,
    result: 'done',
    details: `${opened.details}; opened ${opened.at}, ended before ${at}`,
    ...(opened.session && { session: opened.session }),
  };
}

/** How many sessions are open on a cluster, as far as the trail knows. */
export async function countOpenSessions(db: Reader, clusterId: string): Promise<number> {
  const { count } = await db
    .selectFrom('open_sessions')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('entry', 'like', `%"cluster_id":"${clusterId}"%`)
    .where('presumed_seq', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Keys (`sessionEntryKey`) of the last `most` entries of the trail that tell of sessions. */
export async function listSessionEntryKeys(store: Store, most: number): Promise<Set<string>> {
  const last = await store.read
    .selectFrom('audit_entries')
    .select(['operation', 'target', 'at'])
    .where('operation', 'like', 'ssh.%')
    .orderBy('seq', 'desc')
    .limit(most)
    .execute();
  return new Set(last.map(sessionEntryKey));
}

/** What tells an entry about a session from every other. */
export function sessionEntryKey({
  operation,
  target,
  at,
}: Pick<SessionEntry, 'operation' | 'target' | 'at'>) {
  return JSON.stringify([operation, target, at]);
}

async function append(tx: Tx, entry: SessionEntry): Promise<void> {
  const { organizationId, seq } = await appendEntry(tx, entry);
  if (!entry.operation.startsWith('ssh.session.')) return;
  if (entry.subjectUserId) tx.changed({ sessionsOfUserId: entry.subjectUserId });
  if (entry.operation === 'ssh.session.opened') {
    const opened: Opened = {
      at: entry.at,
      actor_user_id: entry.actorUserId,
      target: entry.target,
      cluster_id: entry.clusterId,
      subject_user_id: entry.subjectUserId ?? null,
      source_address: entry.sourceAddress ?? '',
      details: entry.details ?? '',
      ...(entry.session && { session: entry.session }),
    };
    const row = { id: entry.target, entry: JSON.stringify(opened), server_id: tx.server.id };
    // One entry too many must not keep all that follow from being written.
    await tx.db
      .insertInto('open_sessions')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  } else {
    await addPastSession(tx, { seq, entry, organizationId });
    const [row] = await tx.db
      .deleteFrom('open_sessions')
      .where('id', '=', entry.target)
      .returning('presumed_seq')
      .execute();
    // What its own server says goes before what another one presumed.
    if (row && row.presumed_seq !== null) await deletePastSession(tx, row.presumed_seq);
  }
}

/** The entry in the trail, with the organization of its cluster. */
export async function appendEntry(
  tx: Tx,
  entry: SessionEntry,
): Promise<{ seq: number; organizationId: string | undefined }> {
  const cluster = await tx.db
    .selectFrom('clusters')
    .select('organization_id')
    .where('id', '=', entry.clusterId)
    .executeTakeFirst();
  const organizationId = cluster?.organization_id;
  return { seq: await appendAuditEntry(tx, { ...entry, organizationId }), organizationId };
}

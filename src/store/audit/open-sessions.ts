/**
 * SSH sessions: their audit entries, as the gateway reports them, and the open sessions of all servers of the
 * database: the server of each, requests to close one, and the presumed end of those whose server is gone.
 */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import type { SessionEntry } from '../../domain/audit/audit.ts';
import { noteGatewayLogin } from '../access/direct-logins.ts';
import { findObservation } from '../clusters/observations.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { deleteUpTo, findRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { noteKeyUses } from '../people/ssh-keys.ts';
import { appendAuditEntry } from './audit.ts';
import { addPastSession, deletePastSession } from './past-sessions.ts';

/** Rows of one transaction: few enough to take a millisecond or two. */
const partSize = 50;
/** How long the presumed end of a session is kept, in case its server comes back with it. */
const presumedMs = 86_400_000;

/** The open sessions of the other servers, as they were when they opened. */
export async function listSessionsElsewhere(db: Reader, serverId: string): Promise<SshSession[]> {
  const rows = await listRows(db, 'open_sessions', { presumed_seq: null });
  const others = rows.filter((row) => row.server_id !== serverId);
  return others.flatMap(({ entry }) => (JSON.parse(entry) as SessionEntry).session ?? []);
}

/** A request to close a session, with the message to the person. */
export interface Closing {
  id: string;
  text: string;
}

/** Asks the server that has the session, where that is another one, to close it. False where it was asked before. */
export async function requestClosing(tx: Tx, { id, text }: Closing): Promise<boolean> {
  const session = await findRow(tx.db, 'open_sessions', { id });
  if (session?.closing != null) return false;
  await updateRows(tx.db, 'open_sessions', { id }, { closing: text });
  tx.changed({ kind: 'closing', sessionId: id });
  return true;
}

export async function listClosings(db: Reader, serverId: string): Promise<Closing[]> {
  const rows = await listRows(db, 'open_sessions', { server_id: serverId });
  return rows.flatMap(({ id, closing }) => (closing === null ? [] : [{ id, text: closing }]));
}

export async function listServersWithSessions(db: Reader): Promise<string[]> {
  const rows = await listRows(db, 'open_sessions', { presumed_seq: null });
  return [...new Set(rows.map(({ server_id: id }) => id))];
}

/**
 * Closes in the trail the sessions of a server that is gone. If it comes back with them, `reopenSessions` undoes that,
 * and its own report of their end replaces this one. Returns how many there were.
 */
export async function presumeSessionsClosed(store: Store, serverId: string, reason: string): Promise<number> {
  for (let closed = 0; ; ) {
    const part = await store.write(async (tx) => {
      const at = toTime(tx.now);
      const rows = await tx.db
        .selectFrom('open_sessions')
        .select(['id', 'entry'])
        .where('server_id', '=', serverId)
        .where('presumed_seq', 'is', null)
        .limit(partSize)
        .execute();
      for (const { id, entry: opening } of rows) {
        const entry = endOf(opening, at, reason);
        const { seq, organizationId } = await appendEntry(tx, entry);
        await addPastSession(tx, { seq, entry, organizationId });
        if (entry.subjectUserId) tx.changed({ kind: 'sessions', userId: entry.subjectUserId });
        await updateRows(tx.db, 'open_sessions', { id }, { presumed_seq: seq, presumed_at: at });
      }
      return rows.length;
    });
    closed += part;
    if (part < partSize) return closed;
  }
}

/** Undoes the presumed end of those sessions of this server that are still `open`. Returns how many. */
export async function reopenSessions(store: Store, open: ReadonlySet<string>): Promise<number> {
  const { id: serverId } = store.server;
  const presumed = async (db: Reader) =>
    (await listRows(db, 'open_sessions', { server_id: serverId })).filter(
      ({ id, presumed_seq: seq }) => seq !== null && open.has(id),
    );
  if ((await presumed(store.read)).length === 0) return 0;
  return store.write(async (tx) => {
    const back = await presumed(tx.db);
    for (const { id, entry, presumed_seq: seq } of back) {
      const { details, ...closed } = endOf(entry, toTime(tx.now), 'its server is back and has it');
      await appendEntry(tx, { ...closed, operation: 'ssh.session.opened' });
      if (closed.subjectUserId) tx.changed({ kind: 'sessions', userId: closed.subjectUserId });
      if (seq !== null) await deletePastSession(tx, seq);
      await updateRows(tx.db, 'open_sessions', { id }, { presumed_seq: null, presumed_at: null });
    }
    return back.length;
  });
}

/** Deletes at most `most` sessions whose presumed end is older than `presumedMs`; returns how many. */
export function forgetPresumed({ db }: Tx, now: number, most: number): Promise<number> {
  const end = toTime(now - presumedMs);
  return deleteUpTo(db, 'open_sessions', ['id'], { column: 'presumed_at', end, most });
}

/**
 * Adds entries to the trail, all or none, each with the organization of its cluster. It does not wait for the disk,
 * which would hold up keystrokes in all sessions: a crash takes nothing back, and a power cut only the last few.
 */
export async function appendSessionEntries(store: Store, entries: readonly SessionEntry[]): Promise<void> {
  await store.write(
    async (tx) => {
      for (const entry of entries) await append(tx, entry);
      await noteKeyUses(tx, keyUsesIn(entries));
    },
    { flush: false },
  );
}

/** The last login with each key among entries that are in order. */
function keyUsesIn(entries: readonly SessionEntry[]): Map<string, { at: string; from: string }> {
  const opened = entries.flatMap(({ operation, session }) =>
    operation === 'ssh.session.opened' && session ? [session] : [],
  );
  return new Map(
    opened.map(({ keyId, openedAt, remoteAddress }) => [keyId, { at: openedAt, from: remoteAddress }]),
  );
}

/**
 * Closes in the trail, at `at` (RFC 3339), the sessions that this server had open when it was cut off; returns how
 * many. Those in `spared`, by ID, become this server's instead. Must run before new sessions open.
 */
export async function closeLostSessions(
  store: Store,
  at: string,
  spared: ReadonlySet<string>,
): Promise<number> {
  return store.write(async (tx) => {
    const open = await listRows(tx.db, 'open_sessions', {}, 'id');
    const lost = open.filter(
      (row) => row.presumed_seq === null && row.server_id === tx.server.id && !spared.has(row.id),
    );
    for (const { entry } of lost) await append(tx, endOf(entry, at, 'the service was cut off'));
    for (const { id } of open.filter((row) => spared.has(row.id)))
      await updateRows(tx.db, 'open_sessions', { id }, { server_id: tx.server.id });
    return lost.length;
  });
}

/** The closing entry of a session of which only the opening one is known. */
function endOf(opening: string, at: string, reason: string): SessionEntry {
  const opened = JSON.parse(opening) as SessionEntry;
  const details = `${opened.details}; opened ${opened.at}, ended before ${at}`;
  return { ...opened, at, operation: 'ssh.session.closed', reason, details };
}

/** The number of sessions that are open on a cluster, as far as the trail knows. */
export async function countOpenSessions(db: Reader, clusterId: string): Promise<number> {
  const { count } = await db
    .selectFrom('open_sessions')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('entry', 'like', `%"clusterId":"${clusterId}"%`)
    .where('presumed_seq', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Keys (`sessionEntryKey`) of the last `most` entries of the trail about sessions. */
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
  if (entry.subjectUserId) tx.changed({ kind: 'sessions', userId: entry.subjectUserId });
  if (entry.operation === 'ssh.session.opened') {
    if (entry.session) await noteGatewayLogin(tx, entry.session);
    const session = entry.session && (await withConfirmedJob(tx.db, entry.session));
    const opened = JSON.stringify({ ...entry, ...(session && { session }) });
    const row = { id: entry.target, entry: opened, server_id: tx.server.id };
    // A duplicate entry must not keep all that follow from being written.
    await tx.db
      .insertInto('open_sessions')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  } else {
    const [row] = await tx.db
      .deleteFrom('open_sessions')
      .where('id', '=', entry.target)
      .returning(['entry', 'presumed_seq'])
      .execute();
    const opened = row && (JSON.parse(row.entry) as SessionEntry).session;
    const session = entry.session && (await withConfirmedJob(tx.db, entry.session, opened));
    await addPastSession(tx, { seq, entry: { ...entry, ...(session && { session }) }, organizationId });
    // The report of the session's own server replaces the end that another one presumed.
    if (row && row.presumed_seq !== null) await deletePastSession(tx, row.presumed_seq);
  }
}

/**
 * Leaves out the job of a session unless the cluster reports it as the person's, on that node, or did so when the
 * session `opened`: the job was named by a program that runs as the person.
 */
export async function withConfirmedJob(
  db: Reader,
  { job, jobNode, ...session }: SshSession,
  opened?: SshSession,
): Promise<SshSession> {
  if (job === undefined || jobNode === undefined) return session;
  const known = { ...session, job, jobNode };
  if (opened?.job === job && opened.jobNode === jobNode) return known;
  const { runningJobs = [] } = (await findObservation(db, session.clusterId, 'slurm'))?.report ?? {};
  const isReported = runningJobs.some(
    ({ id, user, machines }) => id === job && user === session.username && machines.includes(jobNode),
  );
  return isReported ? known : session;
}

/** Adds the entry to the trail, with the organization of its cluster. */
async function appendEntry(
  tx: Tx,
  entry: SessionEntry,
): Promise<{ seq: number; organizationId: string | undefined }> {
  const cluster = await findRow(tx.db, 'clusters', { id: entry.clusterId });
  const organizationId = cluster?.organization_id;
  return { seq: await appendAuditEntry(tx, { ...entry, organizationId }), organizationId };
}

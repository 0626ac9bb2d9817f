/**
 * SSH sessions that are open, of all servers of the database: who has which, what is to be closed by whom, and what became of
 * those whose server is gone.
 */
import type { SshSession } from '../domain/ssh-session.ts';
import type { Reader, Store, Tx } from './index.ts';
import { addPastSession, deletePastSession } from './past-sessions.ts';
import { appendEntry, endOf, type Opened } from './session-records.ts';
import { toTime } from './time.ts';

/** Rows of one transaction: few enough to take a millisecond or two. */
const partSize = 50;
/** What another server presumed of a session is kept for so long, should that one come back after all. */
const presumedMs = 86_400_000;

/** Those of the other servers, as they were when they opened. */
export async function listSessionsElsewhere(db: Reader, serverId: string): Promise<SshSession[]> {
  const rows = await db
    .selectFrom('open_sessions')
    .select('entry')
    .where('server_id', '!=', serverId)
    .where('presumed_seq', 'is', null)
    .execute();
  return rows.flatMap(({ entry }) => (JSON.parse(entry) as Opened).session ?? []);
}

/** A session that is to be closed, and the word to the person. */
export interface Closing {
  id: string;
  text: string;
}

/** Has the server that has the session close it, where that is another one. */
export async function requestClosing(tx: Tx, { id, text }: Closing): Promise<void> {
  if (tx.server.isAlone) return;
  await tx.db.updateTable('open_sessions').set({ closing: text }).where('id', '=', id).execute();
  tx.changed({ closingSessionId: id });
}

/** The sessions of a server that are to be closed. */
export async function listClosings(db: Reader, serverId: string): Promise<Closing[]> {
  const rows = await db
    .selectFrom('open_sessions')
    .select(['id', 'closing'])
    .where('server_id', '=', serverId)
    .where('closing', 'is not', null)
    .execute();
  return rows.map(({ id, closing }) => ({ id, text: closing ?? '' }));
}

/** The servers that have sessions in the record. */
export async function listServersWithSessions(db: Reader): Promise<string[]> {
  const rows = await db
    .selectFrom('open_sessions')
    .select('server_id')
    .distinct()
    .where('presumed_seq', 'is', null)
    .execute();
  return rows.flatMap(({ server_id: id }) => id ?? []);
}

/**
 * Closes in the trail the sessions of a server that is gone. Where it comes back with them, `reopenSessions` takes that
 * back, and what it says of their end goes before this. Returns how many there were.
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
        if (entry.subjectUserId) tx.changed({ sessionsOfUserId: entry.subjectUserId });
        await tx.db
          .updateTable('open_sessions')
          .set({ presumed_seq: seq, presumed_at: at })
          .where('id', '=', id)
          .execute();
      }
      return rows.length;
    });
    closed += part;
    if (part < partSize) return closed;
  }
}

/** Takes back that sessions of this server were presumed to be closed: those that it still has. Returns how many. */
export async function reopenSessions(store: Store, open: ReadonlySet<string>): Promise<number> {
  const { id: serverId } = store.server;
  const presumed = (db: Reader) =>
    db
      .selectFrom('open_sessions')
      .select(['id', 'entry', 'presumed_seq'])
      .where('server_id', '=', serverId)
      .where('presumed_seq', 'is not', null);
  const rows = await presumed(store.read).execute();
  if (!rows.some(({ id }) => open.has(id))) return 0;
  return store.write(async (tx) => {
    const back = (await presumed(tx.db).execute()).filter(({ id }) => open.has(id));
    for (const { id, entry, presumed_seq: seq } of back) {
      const { details, ...closed } = endOf(entry, toTime(tx.now), 'its server is back and has it');
      await appendEntry(tx, { ...closed, operation: 'ssh.session.opened' });
      if (closed.subjectUserId) tx.changed({ sessionsOfUserId: closed.subjectUserId });
      if (seq !== null) await deletePastSession(tx, seq);
      await tx.db
        .updateTable('open_sessions')
        .set({ presumed_seq: null, presumed_at: null })
        .where('id', '=', id)
        .execute();
    }
    return back.length;
  });
}

/** Forgets what was presumed long ago. */
export async function forgetPresumed(store: Store, now: number): Promise<void> {
  const old = toTime(now - presumedMs);
  const found = await store.read
    .selectFrom('open_sessions')
    .select('id')
    .where('presumed_at', '<', old)
    .limit(partSize)
    .execute();
  if (found.length === 0) return;
  const ids = found.map(({ id }) => id);
  await store.write(({ db }) => db.deleteFrom('open_sessions').where('id', 'in', ids).execute(), {
    flush: false,
  });
}

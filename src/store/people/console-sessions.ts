/** Sessions of browsers that are signed in to the web console: the person, times, and sealed tokens. */
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, deleteUpTo, findRow, inCamelCase, insertRow, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

/** Times are ms since 1970. */
export interface ConsoleSession {
  id: string;
  userId: string;
  sealed: string;
  address: string;
  /** The name of the browser. */
  program: string;
  createdAt: number;
  seenAt: number;
}

/** Sessions of one person; the least recently used one is deleted for a new one. */
const mostOfPerson = 20;

export async function createConsoleSession(
  tx: Tx,
  session: Omit<ConsoleSession, 'createdAt' | 'seenAt'>,
): Promise<void> {
  const { userId, ...browser } = session;
  const at = toTime(tx.now);
  const others = await sessionsOf(tx.db, userId);
  for (const other of others.slice(mostOfPerson - 1)) await deleteConsoleSession(tx, other.id);
  await insertRow(tx.db, 'console_sessions', { ...browser, user_id: userId, created_at: at, seen_at: at });
  tx.changed({ kind: 'browsers', userId });
}

/** The stored session, whether or not it has expired. */
export async function findConsoleSession(db: Reader, id: string): Promise<ConsoleSession | undefined> {
  const row = await findRow(db, 'console_sessions', { id });
  return row && sessionOf(row);
}

/** A person's sessions, the one used last first, whether or not they have expired. */
export async function listConsoleSessions(db: Reader, userId: string): Promise<ConsoleSession[]> {
  return (await sessionsOf(db, userId)).map(sessionOf);
}

const sessionsOf = prepared((db, userId: string) =>
  db
    .selectFrom('console_sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('seen_at', 'desc')
    .orderBy('id'),
);

export async function touchConsoleSession(tx: Tx, id: string): Promise<void> {
  await updateRows(tx.db, 'console_sessions', { id }, { seen_at: toTime(tx.now) });
}

/** Stores new tokens of a session; false where it has ended meanwhile. */
export async function resealConsoleSession(tx: Tx, id: string, sealed: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('console_sessions')
    .set({ sealed, renewing_until: null })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Claims the renewal of a session's tokens for this server for so long; false where another server has it. */
export async function claimRenewal(tx: Tx, id: string, forMs: number): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('console_sessions')
    .set({ renewing_until: toTime(tx.now + forMs) })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('renewing_until', 'is', null), eb('renewing_until', '<=', toTime(tx.now))]))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function leaveRenewal(tx: Tx, id: string): Promise<void> {
  await updateRows(tx.db, 'console_sessions', { id }, { renewing_until: null });
}

/** Ends a session; where `userId` is given, only if it is theirs. Returns whether there was one. */
export async function deleteConsoleSession(tx: Tx, id: string, userId?: string): Promise<boolean> {
  const found = await findConsoleSession(tx.db, id);
  if (!found || (userId !== undefined && found.userId !== userId)) return false;
  await deleteRows(tx.db, 'console_sessions', { id });
  tx.changed({ kind: 'browsers', userId: found.userId });
  return true;
}

/** Ends all sessions of a person but one; returns how many. */
export async function deleteOtherConsoleSessions(tx: Tx, userId: string, keep: string): Promise<number> {
  const { numDeletedRows } = await tx.db
    .deleteFrom('console_sessions')
    .where('user_id', '=', userId)
    .where('id', '!=', keep)
    .executeTakeFirst();
  if (numDeletedRows > 0n) tx.changed({ kind: 'browsers', userId });
  return Number(numDeletedRows);
}

/** Deletes at most `most` sessions each that were created, or last used, before these times. Returns the larger of both numbers. */
export async function deleteOldConsoleSessions(
  tx: Tx,
  before: { created: number; seen: number },
  most: number,
): Promise<number> {
  const upTo = (column: 'created_at' | 'seen_at', ms: number) =>
    deleteUpTo(tx.db, 'console_sessions', ['id'], { column, end: toTime(ms), most });
  return Math.max(await upTo('created_at', before.created), await upTo('seen_at', before.seen));
}

function sessionOf(row: Schema['console_sessions']): ConsoleSession {
  const { renewing_until: _, created_at: createdAt, seen_at: seenAt, ...session } = row;
  return { ...inCamelCase(session), createdAt: fromTime(createdAt), seenAt: fromTime(seenAt) };
}

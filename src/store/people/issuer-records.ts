/**
 * Records of the embedded issuer's library: device codes, grants, tokens. Most of these IDs are bearer secrets, so
 * only their SHA-256 is stored, and the payload is stored without them: the file or a backup of it contains nothing
 * that the issuer would accept. Times are seconds since 1970, as in the tokens themselves.
 */
import { createHash } from 'node:crypto';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, deleteUpTo, findRow, saveRow, updateRows } from '../engine/rows.ts';
import type { Schema } from '../generated/schema.ts';

export type IssuerPayload = Record<string, unknown>;

export interface IssuerRecord {
  payload: IssuerPayload;
  consumedAt: number | undefined;
}

/** Creates or replaces a record; a consumed one stays consumed. `expiresAt` left out: kept for good. */
export async function saveIssuerRecord(
  tx: Tx,
  model: string,
  id: string,
  payload: IssuerPayload,
  expiresAt: number | undefined,
): Promise<void> {
  const row = {
    model,
    id: hash(id),
    payload: JSON.stringify({ ...payload, jti: undefined, userCode: undefined, uid: undefined }),
    grant_id: text(payload.grantId),
    user_code: hashed(payload.userCode),
    uid: hashed(payload.uid),
    expires_at: expiresAt ?? null,
  };
  await saveRow(tx.db, 'issuer_records', ['model', 'id'], row);
}

/** The record, or undefined when there is none or it has expired. */
export async function findIssuerRecord(
  reader: Reader,
  model: string,
  id: string,
  now: number,
): Promise<IssuerRecord | undefined> {
  const record = live(await findRecord(reader, model, 'id', id), now);
  return record && { ...record, payload: { ...record.payload, jti: id } };
}

/** The record of a user code, without its ID: that is the device's secret and is not known here. */
export const findIssuerRecordByUserCode = findsBy('user_code');
/** The record of a session's uid, without its ID. */
export const findIssuerRecordByUid = findsBy('uid');

function findsBy(column: 'user_code' | 'uid') {
  return async (reader: Reader, model: string, secret: string, now: number) =>
    live(await findRecord(reader, model, column, secret), now);
}

/**
 * Replaces the payload of a user code's record with what the pure function `decide` returns; undefined leaves it as it
 * is. Returns whether it was written. In one transaction, so that of two answers to one code only the first counts.
 */
export async function updateIssuerRecordByUserCode(
  tx: Tx,
  model: string,
  userCode: string,
  now: number,
  decide: (record: IssuerRecord) => IssuerPayload | undefined,
): Promise<boolean> {
  const row = await findRecord(tx.db, model, 'user_code', userCode);
  const record = live(row, now);
  const payload = record && decide(record);
  if (!row || !payload) return false;
  await updateRows(
    tx.db,
    'issuer_records',
    { model, id: row.id },
    { payload: JSON.stringify(payload), grant_id: text(payload.grantId) },
  );
  return true;
}

/** Marks a record as used; false when it already was or is not there, so that a race has one winner. */
export async function consumeIssuerRecord(tx: Tx, model: string, id: string, now: number): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('issuer_records')
    .set({ consumed_at: now })
    .where('model', '=', model)
    .where('id', '=', hash(id))
    .where('consumed_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Whether a used record may answer once more: it was used at most `graceSeconds` ago, and its successor was not used
 * itself. A clock that was set back does not lengthen the grace.
 */
export async function isRepeatable(
  reader: Reader,
  model: string,
  record: { consumedAt: number; successorId: string },
  { now, graceSeconds }: { now: number; graceSeconds: number },
): Promise<boolean> {
  if (Math.abs(now - record.consumedAt) > graceSeconds) return false;
  const successor = live(await findRecord(reader, model, 'id', record.successorId), now);
  return successor !== undefined && successor.consumedAt === undefined;
}

/**
 * Marks the record of `id` as used and saves its successor: both or neither. A repetition within the grace of
 * `isRepeatable` changes nothing and succeeds. False when the record is missing, or was used in any other way.
 */
export async function replaceIssuerRecord(
  tx: Tx,
  model: string,
  id: string,
  successor: { id: string; payload: IssuerPayload; expiresAt: number | undefined },
  times: { now: number; graceSeconds: number },
): Promise<boolean> {
  if (await consumeIssuerRecord(tx, model, id, times.now)) {
    await saveIssuerRecord(tx, model, successor.id, successor.payload, successor.expiresAt);
    return true;
  }
  const used = live(await findRecord(tx.db, model, 'id', id), times.now);
  if (used?.consumedAt === undefined) return false;
  return isRepeatable(tx.db, model, { consumedAt: used.consumedAt, successorId: successor.id }, times);
}

export async function deleteIssuerRecord(tx: Tx, model: string, id: string): Promise<void> {
  await deleteRows(tx.db, 'issuer_records', { model, id: hash(id) });
}

export async function deleteIssuerRecordsOfGrant(tx: Tx, model: string, grantId: string): Promise<void> {
  await deleteRows(tx.db, 'issuer_records', { grant_id: grantId, model });
}

/** Removes at most `most` expired records and returns how many there were. */
export function deleteExpiredIssuerRecords(tx: Tx, now: number, most: number): Promise<number> {
  return deleteUpTo(tx.db, 'issuer_records', ['model', 'id'], { column: 'expires_at', end: now, most });
}

function findRecord(
  reader: Reader,
  model: string,
  column: 'id' | 'user_code' | 'uid',
  secret: string,
): Promise<Schema['issuer_records'] | undefined> {
  return findRow(reader, 'issuer_records', { [column]: hash(secret), model });
}

function live(row: Schema['issuer_records'] | undefined, now: number): IssuerRecord | undefined {
  if (!row || (row.expires_at !== null && row.expires_at <= now)) return undefined;
  return { payload: JSON.parse(row.payload), consumedAt: row.consumed_at ?? undefined };
}

function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

function hashed(value: unknown): string | null {
  return typeof value === 'string' ? hash(value) : null;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

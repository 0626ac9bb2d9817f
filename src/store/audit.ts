/** The audit trail. Append-only: the database itself refuses to change or drop an entry. */
import type { Selectable } from 'kysely';
import { type AuditEntry, auditHash, type ChainedEntry, type Redaction } from '../domain/audit.ts';
import type { AuditRecord } from '../domain/audit-text.ts';
import { isId, isUuid } from '../domain/id.ts';
import { withoutNulIn } from '../domain/nul.ts';
import type { AuditEntryTable } from './audit-tables.ts';
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { toTime } from './time.ts';

const longestTarget = 200;
const longestDetails = 2000;

/**
 * Adds to the trail, in the transaction of what the entry tells of. Who asks can name things as they like, so that IDs
 * which cannot be ours are left out, and long texts are cut; none has NUL, or the hash would be over what is not stored.
 * Returns its number.
 */
export async function appendAuditEntry(tx: Tx, entry: AuditEntry): Promise<number> {
  const [last] = await lastEntry(tx.db);
  const { organizationId, clusterId, subjectUserId } = entry;
  const record: AuditRecord = withoutNulIn({
    seq: (last?.seq ?? 0) + 1,
    at: entry.at ?? toTime(tx.now),
    actor_user_id: entry.actorUserId,
    command_id: entry.commandId ?? null,
    operation: entry.operation,
    target: cut(entry.target, longestTarget),
    organization_id: organizationId && isId('org', organizationId) ? organizationId : null,
    cluster_id: clusterId && isUuid(clusterId) ? clusterId : null,
    subject_user_id: subjectUserId && isId('user', subjectUserId) ? subjectUserId : null,
    reason: entry.reason,
    source_address: entry.sourceAddress ?? '',
    result: entry.result,
    details: cut(entry.details ?? '', longestDetails),
  });
  await insertEntry(tx.db, { ...record, hash: auditHash(last?.hash ?? '', record), redaction: null });
  return record.seq;
}

const lastEntry = prepared((db) =>
  db.selectFrom('audit_entries').select(['seq', 'hash']).orderBy('seq', 'desc').limit(1),
);

const insertEntry = prepared((db, entry: AuditEntryTable) => db.insertInto('audit_entries').values(entry));

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`.toWellFormed();
}

export interface AuditFilter {
  /** Who did it, or to whom it was done. */
  userId?: string | undefined;
  clusterId?: string | undefined;
  /** An operation, or with `*` at the end all that begin so. */
  operation?: string | undefined;
  /** RFC 3339 in UTC; `from` included, `to` not. */
  from?: string | undefined;
  to?: string | undefined;
}

/** An entry as it is shown: with the email of who did it. */
export type AuditListing = ChainedEntry & { redaction: Redaction | null; actor_email: string };

/** A row, its redaction read. */
export function withRedaction<Row extends Pick<Selectable<AuditEntryTable>, 'redaction'>>(row: Row) {
  const { redaction } = row;
  return { ...row, redaction: redaction === null ? null : (JSON.parse(redaction) as Redaction) };
}

/** The hash of an entry; undefined where there is none of that number. */
export async function findAuditHash(db: Reader, seq: number): Promise<string | undefined> {
  const row = await db.selectFrom('audit_entries').select('hash').where('seq', '=', seq).executeTakeFirst();
  return row?.hash;
}

/** The number of the last entry; 0 while there is none. */
export async function findLastSeq(db: Reader): Promise<number> {
  const [last] = await lastEntry(db);
  return last?.seq ?? 0;
}

/** A page of the trail, beginning behind `after` in its order; 0: at its begin. Left out, the oldest come first. */
export async function listAuditEntries(
  db: Reader,
  filter: AuditFilter,
  { after, limit, order = 'oldest' }: { after: number; limit: number; order?: 'oldest' | 'newest' },
): Promise<AuditListing[]> {
  const isNewest = order === 'newest';
  let query = db
    .selectFrom('audit_entries as e')
    .innerJoin('users as u', 'u.id', 'e.actor_user_id')
    .selectAll('e')
    .select('u.primary_email as actor_email');
  if (after > 0 || !isNewest) query = query.where('e.seq', isNewest ? '<' : '>', after);
  const { userId, clusterId, operation, from, to } = filter;
  if (userId !== undefined) {
    query = query.where((eb) =>
      eb.or([eb('e.actor_user_id', '=', userId), eb('e.subject_user_id', '=', userId)]),
    );
  }
  if (clusterId !== undefined) query = query.where('e.cluster_id', '=', clusterId);
  if (operation?.endsWith('*')) {
    const begin = operation.slice(0, -1);
    query = query.where('e.operation', '>=', begin).where('e.operation', '<', `${begin}\uffff`);
  } else if (operation !== undefined) query = query.where('e.operation', '=', operation);
  if (from !== undefined) query = query.where('e.at', '>=', from);
  if (to !== undefined) query = query.where('e.at', '<', to);
  const rows = await query
    .orderBy('e.seq', isNewest ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(withRedaction);
}

/** Logins of a person that the gateway refused, newest first. */
export async function listRefusedLogins(
  db: Reader,
  userId: string,
  limit: number,
): Promise<
  { at: string; clusterId: string | null; keyId: string; sourceAddress: string; message: string }[]
> {
  return db
    .selectFrom('audit_entries')
    .select([
      'at',
      'cluster_id as clusterId',
      'target as keyId',
      'source_address as sourceAddress',
      'reason as message',
    ])
    .where('subject_user_id', '=', userId)
    .where('operation', '=', 'ssh.login.refused')
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

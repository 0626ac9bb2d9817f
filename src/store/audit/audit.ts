/** The audit trail and its signed heads. Append-only: the database itself refuses to change or drop an entry. */
import { type Selectable, sql } from 'kysely';
import {
  type AuditCheckpoint,
  type AuditEntry,
  type AuditRecord,
  auditHash,
  type ChainedEntry,
  type Redaction,
  type SignedHead,
} from '../../domain/audit/audit.ts';
import { isId, isUuid } from '../../domain/id.ts';
import { shortText, storedTextsIn } from '../../domain/text.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, findRow, insertRow, saveRow } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

/** Each head covers all that the ones before it cover, so the oldest can go. */
const mostHeads = 1000;

/** The newest head; undefined while there is none. */
export async function findLastHead(db: Reader): Promise<SignedHead | undefined> {
  return db.selectFrom('audit_heads').selectAll().orderBy('seq', 'desc').limit(1).executeTakeFirst();
}

/** The checkpoint at which the trail begins; undefined while nothing of it was ever deleted. */
export async function findCheckpoint(db: Reader): Promise<AuditCheckpoint | undefined> {
  return db.selectFrom('audit_checkpoints').selectAll().orderBy('seq', 'desc').limit(1).executeTakeFirst();
}

export async function listHeads(db: Reader, page: { after: number; limit: number }): Promise<SignedHead[]> {
  const heads = db.selectFrom('audit_heads').selectAll().where('seq', '>', page.after);
  return heads.orderBy('seq').limit(page.limit).execute();
}

/** Stores a head, replacing one of the same entry (with another key), and drops the oldest beyond a thousand. */
export async function addHead(store: Store, head: SignedHead): Promise<void> {
  await store.write(async ({ db }) => {
    await deleteRows(db, 'audit_heads', { seq: head.seq });
    await insertRow(db, 'audit_heads', head);
    const newest = db
      .selectFrom('audit_heads')
      .select('seq')
      .orderBy('seq', 'desc')
      .offset(mostHeads)
      .limit(1);
    await db
      .deleteFrom('audit_heads')
      .where('seq', '<=', (eb) => eb.fn.coalesce(newest, eb.val(0)))
      .execute();
  });
}

/** The position of a file that copies the trail: the numbers of its last entry and of its last head. */
export interface AuditPosition {
  entry: number;
  head: number;
}

export async function findPosition(db: Reader, file: string): Promise<AuditPosition> {
  const row = await findRow(db, 'audit_copies', { file });
  return { entry: row?.entry_seq ?? 0, head: row?.head_seq ?? 0 };
}

/** Sets the position of a file. It does not wait for the disk. */
export async function setPosition(store: Store, file: string, { entry, head }: AuditPosition): Promise<void> {
  const row = { file, entry_seq: entry, head_seq: head };
  await store.write(({ db }) => saveRow(db, 'audit_copies', ['file'], row), { flush: false });
}

const longestTarget = 200;
const longestText = 2000;

/**
 * Adds an entry to the trail, in the transaction of the change itself. Requests can name anything, so IDs that cannot
 * be ours are left out, and long texts are cut. The hash covers each text as it is read back, or the chain would
 * break. Returns the entry's number.
 */
export async function appendAuditEntry(tx: Tx, entry: AuditEntry): Promise<number> {
  const last = await readTrailEnd(tx);
  const { organizationId, clusterId, subjectUserId } = entry;
  const record: AuditRecord = storedTextsIn({
    seq: (last?.seq ?? 0) + 1,
    at: entry.at ?? toTime(tx.now),
    actor_user_id: entry.actorUserId,
    command_id: entry.commandId ?? null,
    operation: entry.operation,
    target: shortText(entry.target, longestTarget),
    organization_id: organizationId && isId('org', organizationId) ? organizationId : null,
    cluster_id: clusterId && isUuid(clusterId) ? clusterId : null,
    subject_user_id: subjectUserId && isId('user', subjectUserId) ? subjectUserId : null,
    reason: shortText(entry.reason, longestText),
    source_address: shortText(entry.sourceAddress ?? '', longestTarget),
    result: shortText(entry.result, longestTarget),
    details: shortText(entry.details ?? '', longestText),
  });
  const hash = auditHash(last?.hash ?? '', record);
  trailEnds.set(tx.db, Promise.resolve({ seq: record.seq, hash }));
  await insertRow(tx.db, 'audit_entries', { ...record, hash, redaction: null });
  return record.seq;
}

/** The trail's end by open transaction: no other one writes meanwhile, and a rollback takes back all later entries. */
const trailEnds = new WeakMap<Tx['db'], Promise<TrailEnd>>();

type TrailEnd = { seq: number; hash: string } | undefined;

/** Reads the end of the trail, once per transaction. Started together with other queries, it adds no round trip. */
export function readTrailEnd({ db }: Pick<Tx, 'db'>): Promise<TrailEnd> {
  const known = trailEnds.get(db);
  if (known) return known;
  const end = lastEntry(db).then(([last]) => last);
  trailEnds.set(db, end);
  return end;
}

const lastEntry = prepared((db) =>
  db.selectFrom('audit_entries').select(['seq', 'hash']).orderBy('seq', 'desc').limit(1),
);

export interface AuditFilter {
  userId?: string | undefined;
  clusterId?: string | undefined;
  /** An operation, or with `*` at the end all that begin so. */
  operation?: string | undefined;
  /** RFC 3339 in UTC; `from` included, `to` not. */
  from?: string | undefined;
  to?: string | undefined;
  result?: 'done' | 'refused' | undefined;
}

/** An entry as it is shown, with the email of its actor. */
export type AuditListing = ChainedEntry & { redaction: Redaction | null; actor_email: string };

export function withRedaction<Row extends Pick<Selectable<Schema['audit_entries']>, 'redaction'>>(row: Row) {
  const { redaction } = row;
  return { ...row, redaction: redaction === null ? null : (JSON.parse(redaction) as Redaction) };
}

/** The hash of an entry; undefined where there is none of that number. */
export async function findAuditHash(db: Reader, seq: number): Promise<string | undefined> {
  const row = await findRow(db, 'audit_entries', { seq });
  return row?.hash;
}

/** The number of the last entry; 0 while there is none. */
export async function findLastSeq(db: Reader): Promise<number> {
  const [last] = await lastEntry(db);
  return last?.seq ?? 0;
}

/**
 * Condition: the person did it, or another person did it to them. SQLite uses a partial index only where the query
 * repeats the condition of the index.
 */
const concerns = (userId: string) =>
  sql<boolean>`(actor_user_id = ${userId} or (subject_user_id = ${userId} and subject_user_id <> actor_user_id))`;

/** A page of the trail that begins behind `after` in its order (0: at the beginning). The default order is `oldest`. */
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
  const { userId, clusterId, operation, from, to, result } = filter;
  if (userId !== undefined) query = query.where(concerns(userId));
  if (clusterId !== undefined) query = query.where('e.cluster_id', '=', clusterId);
  if (operation?.endsWith('*')) {
    const begin = operation.slice(0, -1);
    query = query.where('e.operation', '>=', begin).where('e.operation', '<', `${begin}\uffff`);
  } else if (operation !== undefined) query = query.where('e.operation', '=', operation);
  if (from !== undefined) query = query.where('e.at', '>=', from);
  if (to !== undefined) query = query.where('e.at', '<', to);
  if (result !== undefined) query = query.where('e.result', result === 'done' ? '=' : '!=', 'done');
  const rows = await query
    .orderBy('e.seq', isNewest ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map(withRedaction);
}

/** The current names of what entries refer to by ID. Erased people have their pseudonyms. */
export async function findNamesIn(
  db: Reader,
  entries: readonly Pick<
    AuditListing,
    'actor_user_id' | 'subject_user_id' | 'organization_id' | 'cluster_id'
  >[],
) {
  const idsOf = (name: keyof (typeof entries)[number]) =>
    entries.map((entry) => entry[name]).filter((id) => id !== null);
  const userIds = [...new Set([...idsOf('actor_user_id'), ...idsOf('subject_user_id')])];
  const named = db.selectFrom('users').select(['id', 'display_name as name', 'primary_email as email']);
  const organizations = db.selectFrom('organizations').select(['id', 'display_name as name']);
  const clusters = db.selectFrom('clusters').select(['id', 'name']);
  const byId = async <Row extends { id: string }>(rows: Promise<Row[]>) =>
    new Map((await rows).map((row) => [row.id, row]));
  return {
    people: await byId(named.where('id', 'in', userIds).execute()),
    organizations: await byId(
      organizations.where('id', 'in', [...new Set(idsOf('organization_id'))]).execute(),
    ),
    clusters: await byId(clusters.where('id', 'in', [...new Set(idsOf('cluster_id'))]).execute()),
  };
}

/** Logins of a person that the gateway refused, newest first. */
export async function listRefusedLogins(
  db: Reader,
  userId: string,
  limit: number,
): Promise<
  { at: string; clusterId: string | null; keyId: string; sourceAddress: string; message: string }[]
> {
  return (
    db
      .selectFrom('audit_entries')
      .select([
        'at',
        'cluster_id as clusterId',
        'target as keyId',
        'source_address as sourceAddress',
        'reason as message',
      ])
      // The person is the actor of each (`entryOf` of the gateway).
      .where('actor_user_id', '=', userId)
      .where('operation', '=', 'ssh.login.refused')
      .orderBy('seq', 'desc')
      .limit(limit)
      .execute()
  );
}

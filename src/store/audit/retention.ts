/**
 * Deletes data that is kept for a limited time: stored results of commands, past sessions, audit entries, and texts in
 * them. Each function does a small part of the work, and may run again.
 */
import {
  type AuditCheckpoint,
  type AuditEntry,
  type EntryTexts,
  findBreak,
  type Redaction,
} from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import { storedTextsIn } from '../../domain/text.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { insertRow, tablesOf, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import { type AuditListing, appendAuditEntry, findCheckpoint, listAuditEntries } from './audit.ts';

/** Rows of one transaction: few enough to take a millisecond or two. */
const partSize = 50;

/** Tables whose keys rise with their times, so that the oldest rows are found without reading the others. */
const aging = {
  commands: { key: 'id', time: 'created_at' },
  access_requests: { key: 'id', time: 'created_at' },
  ssh_sessions: { key: 'seq', time: 'closed_at' },
} as const;

/** Deletes rows from before a time (ms since 1970), at most a part of them; returns whether there may be more. */
export async function deleteOld(store: Store, table: keyof typeof aging, before: number): Promise<boolean> {
  const { key, time } = aging[table];
  const name: string = table;
  const oldest = tablesOf(store.read).selectFrom(name).select([key, time]).orderBy(key).limit(partSize);
  const old = (await oldest.execute())
    .filter((row) => (row[time] ?? '') < toTime(before))
    .map((row) => row[key] ?? null);
  if (old.length === 0) return false;
  const deleted = (db: Reader) => tablesOf(db).deleteFrom(name).where(key, 'in', old).execute();
  await store.write(({ db }) => deleted(db), { flush: false });
  return old.length === partSize;
}

/** Clears the addresses of keys last used before a time (ms since 1970), at most a part; returns whether there may be more. */
export async function forgetKeyAddresses(store: Store, before: number): Promise<boolean> {
  const old = store.read
    .selectFrom('ssh_keys')
    .select('id')
    .where('last_used_at', '<', toTime(before))
    .where('last_used_from', 'is not', null)
    .limit(partSize);
  const ids = (await old.execute()).map(({ id }) => id);
  if (ids.length === 0) return false;
  await store.write(
    ({ db }) => db.updateTable('ssh_keys').set({ last_used_from: null }).where('id', 'in', ids).execute(),
    { flush: false },
  );
  return ids.length === partSize;
}

/**
 * Makes the trail begin behind a checkpoint, with an entry that records it. Both are on disk when this resolves;
 * `deleteBeforeCheckpoint` deletes the entries before.
 */
export async function setCheckpoint(
  store: Store,
  checkpoint: AuditCheckpoint,
  entry: AuditEntry,
): Promise<void> {
  await store.write(async (tx) => {
    await insertRow(tx.db, 'audit_checkpoints', checkpoint);
    await tx.db.deleteFrom('audit_checkpoints').where('seq', '<', checkpoint.seq).execute();
    await appendAuditEntry(tx, entry);
  });
}

/** Deletes entries up to the checkpoint, at most a part of them; returns whether there may be more. */
export async function deleteBeforeCheckpoint(store: Store, checkpointSeq: number): Promise<boolean> {
  const rows = await store.read
    .selectFrom('audit_entries')
    .select('seq')
    .where('seq', '<=', checkpointSeq)
    .orderBy('seq')
    .limit(partSize)
    .execute();
  const last = rows.at(-1)?.seq;
  if (last === undefined) return false;
  await store.write(
    async ({ db }) => {
      await db.deleteFrom('audit_entries').where('seq', '<=', last).execute();
      await db.deleteFrom('ssh_sessions').where('seq', '<=', last).execute();
    },
    { flush: false },
  );
  return rows.length === partSize;
}

/** The time of the last entry from before a time, in ms since 1970; undefined where there is none. */
export async function findLastTimeBefore(db: Reader, time: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('audit_entries')
    .select('at')
    .where('at', '<', toTime(time))
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && fromTime(row.at);
}

export interface RedactionOptions {
  /** The number of the entry to begin behind, and of the last one. */
  after: number;
  until: number;
  /** The new texts of an entry; undefined where it stays as it is. */
  redact(entry: AuditListing): EntryTexts | undefined;
  /** Signs an entry as it is now, behind an entry with the hash `previous`. */
  sign(previous: string, entry: AuditListing): Redaction;
}

/** Replaces texts in a part of the trail; returns the last entry read, undefined at the end. Throws `invalid_state` for an entry that breaks the chain. */
export async function redactEntries(store: Store, options: RedactionOptions): Promise<number | undefined> {
  const { after, until, redact, sign } = options;
  const page = await listAuditEntries(store.read, {}, { after, limit: partSize });
  const rows = page.filter(({ seq }) => seq <= until);
  const last = rows.at(-1);
  if (!last) return undefined;
  const changes = rows.flatMap((row) => {
    const replaced = redact(row);
    // Texts are stored without NUL, and have to be signed as stored.
    const texts = replaced && storedTextsIn(replaced);
    return texts && !isSame(row, texts) ? { seq: row.seq, texts } : [];
  });
  if (changes.length > 0) {
    await store.write(async ({ db }) => {
      for (const { seq, texts } of changes) {
        // Read again: another part may have changed it, and retention may have deleted it.
        const row = await entryAt(db, seq);
        const before = await entryBefore(db, seq);
        if (!row || !before) continue;
        // An entry that another program changed is not signed.
        if (findBreak(before, [row])) {
          const message = `Entry ${seq} of the audit trail does not fit; nothing of it is replaced.`;
          throw new DomainError('invalid_state', message);
        }
        const entry = { ...row, ...texts };
        await updateRows(
          db,
          'audit_entries',
          { seq },
          { ...texts, redaction: JSON.stringify(sign(before.hash, entry)) },
        );
      }
    });
  }
  return last.seq;
}

function isSame(entry: EntryTexts, texts: EntryTexts): boolean {
  const names = ['target', 'reason', 'source_address', 'details'] as const;
  return names.every((name) => entry[name] === texts[name]);
}

async function entryAt(db: Reader, seq: number): Promise<AuditListing | undefined> {
  const [entry] = await listAuditEntries(db, {}, { after: seq - 1, limit: 1 });
  return entry?.seq === seq ? entry : undefined;
}

/** The entry before, or the checkpoint; undefined for an entry before the checkpoint, which is about to be deleted. */
async function entryBefore(db: Reader, seq: number): Promise<{ seq: number; hash: string } | undefined> {
  const begin = (await findCheckpoint(db)) ?? { seq: 0, hash: '' };
  if (seq <= begin.seq) return undefined;
  const entries = db.selectFrom('audit_entries').select(['seq', 'hash']).where('seq', '<', seq);
  const before = await entries.orderBy('seq', 'desc').limit(1).executeTakeFirst();
  return before && before.seq > begin.seq ? before : begin;
}

/**
 * Accepts an entry at which the chain broke: the installation's key signs the entry as it is, behind the hash that
 * precedes it now, and marks it for good. Throws `not_found`, and `invalid_state` where nothing is broken there.
 */
export async function acceptBreak(
  { db }: Tx,
  seq: number,
  sign: RedactionOptions['sign'],
): Promise<AuditListing> {
  const entry = await entryAt(db, seq);
  const before = await entryBefore(db, seq);
  if (!entry || !before) throw new DomainError('not_found', `The audit trail has no entry ${seq}.`);
  const redaction = sign(before.hash, entry);
  if (!findBreak(before, [entry], (key) => key === redaction.key))
    throw new DomainError(
      'invalid_state',
      `Entry ${seq} follows from the one before, so that nothing is to be accepted there. \`andromeda admin audit verify\` names the first that does not.`,
    );
  await updateRows(db, 'audit_entries', { seq }, { redaction: JSON.stringify(redaction) });
  return entry;
}

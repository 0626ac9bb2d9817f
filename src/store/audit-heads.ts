/** Signed heads of the audit trail, and how much of the trail each destination has been sent. */
import type { AuditCheckpoint, SignedHead } from '../domain/audit-head.ts';
import type { Reader, Store } from './index.ts';

/** Each head covers all that the ones before it cover, so the oldest can go. */
const mostHeads = 1000;

/** The newest head; undefined while there is none. */
export async function findLastHead(db: Reader): Promise<SignedHead | undefined> {
  return db.selectFrom('audit_heads').selectAll().orderBy('seq', 'desc').limit(1).executeTakeFirst();
}

/** Where the trail begins; undefined while nothing of it was ever deleted. */
export async function findCheckpoint(db: Reader): Promise<AuditCheckpoint | undefined> {
  return db.selectFrom('audit_checkpoints').selectAll().orderBy('seq', 'desc').limit(1).executeTakeFirst();
}

/** Heads behind an entry, oldest first. */
export async function listHeads(db: Reader, page: { after: number; limit: number }): Promise<SignedHead[]> {
  const heads = db.selectFrom('audit_heads').selectAll().where('seq', '>', page.after);
  return heads.orderBy('seq').limit(page.limit).execute();
}

/** Keeps a head, in the place of one of the same entry (with another key), and drops the oldest beyond a thousand. */
export async function addHead(store: Store, head: SignedHead): Promise<void> {
  await store.write(async ({ db }) => {
    await db.deleteFrom('audit_heads').where('seq', '=', head.seq).execute();
    await db.insertInto('audit_heads').values(head).execute();
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

/** How far a destination has got: the numbers of the last entry and of the last head that it has. */
export interface AuditPosition {
  entry: number;
  /** Of that entry; '' where it is not known. */
  hash: string;
  head: number;
}

/** The position of a destination; the beginning for one that is new. */
export async function findPosition(db: Reader, destination: string): Promise<AuditPosition> {
  const row = await db
    .selectFrom('audit_positions')
    .select(['entry_seq', 'entry_hash', 'head_seq'])
    .where('destination', '=', destination)
    .executeTakeFirst();
  return { entry: row?.entry_seq ?? 0, hash: row?.entry_hash ?? '', head: row?.head_seq ?? 0 };
}

/** Sets the position of a destination. It does not wait for the disk. */
export async function setPosition(store: Store, destination: string, position: AuditPosition): Promise<void> {
  const { entry, hash, head } = position;
  const values = { entry_seq: entry, entry_hash: hash, head_seq: head };
  await store.write(
    async ({ db }) => {
      await db
        .insertInto('audit_positions')
        .values({ destination, ...values })
        .onConflict((conflict) => conflict.column('destination').doUpdateSet(values))
        .execute();
    },
    { flush: false },
  );
}

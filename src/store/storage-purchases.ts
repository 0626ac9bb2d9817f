/** Storage purchases and the quotes they come from. What is active stays so: no query here takes capacity away. */
import type { Selectable } from 'kysely';
import type { Cluster } from '../domain/cluster.ts';
import { newId } from '../domain/id.ts';
import {
  quoteLifetimeMs,
  type StorageOffer,
  type StoragePurchase,
  type StorageQuote,
  type StorageTarget,
  type StorageType,
  storageTypes,
} from '../domain/storage-purchase.ts';
import type { Reader, Tx } from './index.ts';
import { listReportedStorage } from './observations.ts';
import type { StoragePurchaseTable, StorageQuoteTable } from './schema.ts';
import { toTime } from './time.ts';

/** What a cluster's active purchases come to, in bytes, by type. */
export async function sumActivePurchases(
  db: Reader,
  clusterId: string,
): Promise<Record<StorageType, number>> {
  const sums = { ceph: 0, nfs: 0 };
  const rows = await db
    .selectFrom('storage_purchases')
    .select((eb) => ['storage_type', eb.fn.sum<number>('bytes').as('bytes')])
    .where('cluster_id', '=', clusterId)
    .where('state', '=', 'active')
    .groupBy('storage_type')
    .execute();
  // PostgreSQL gives sums as text.
  for (const row of rows) sums[row.storage_type] = Number(row.bytes);
  return sums;
}

/** What counts of a cluster when storage is bought for it; the purchase in question, `except`, is left out. */
export async function findStorageTarget(db: Reader, cluster: Cluster, except = ''): Promise<StorageTarget> {
  const sums = await sumActivePurchases(db, cluster.id);
  const rows = await db
    .selectFrom('storage_purchases')
    .select('storage_type')
    .distinct()
    .where('cluster_id', '=', cluster.id)
    .where('state', 'in', ['requested', 'active'])
    .where('id', '!=', except)
    .execute();
  const bought = new Set<string>(rows.map((row) => row.storage_type));
  const reported = await listReportedStorage(db, cluster.id);
  const types = storageTypes.filter((type) => bought.has(type) || reported.some((storage) => storage[type]));
  return { state: cluster.state, activeBytes: sums.ceph + sums.nfs, types };
}

/** A new quote for one cluster. */
export async function createQuote(
  tx: Tx,
  quote: StorageOffer & { organizationId: string; clusterId: string; currentBytes: number; userId: string },
): Promise<StorageQuote> {
  const row = {
    id: newId('quote', tx.now),
    organization_id: quote.organizationId,
    cluster_id: quote.clusterId,
    storage_type: quote.type,
    bytes: quote.bytes,
    current_bytes: quote.currentBytes,
    created_by_user_id: quote.userId,
    created_at: toTime(tx.now),
    expires_at: toTime(tx.now + quoteLifetimeMs),
  };
  await tx.db.insertInto('storage_quotes').values(row).execute();
  return quoteOf(row);
}

/** A quote, and whether a purchase came from it. */
export async function findQuote(
  db: Reader,
  quoteId: string,
): Promise<(StorageQuote & { used: boolean }) | undefined> {
  const row = await db
    .selectFrom('storage_quotes as q')
    .leftJoin('storage_purchases as p', 'p.quote_id', 'q.id')
    .selectAll('q')
    .select('p.id as purchase_id')
    .where('q.id', '=', quoteId)
    .executeTakeFirst();
  if (!row) return undefined;
  return { ...quoteOf(row), used: row.purchase_id !== null };
}

/** A purchase of what was quoted, `requested`. The database has room for one a quote. */
export async function createPurchase(tx: Tx, quote: StorageQuote, userId: string): Promise<StoragePurchase> {
  const row = {
    id: newId('purchase', tx.now),
    organization_id: quote.organizationId,
    cluster_id: quote.clusterId,
    quote_id: quote.id,
    storage_type: quote.type,
    bytes: quote.bytes,
    state: 'requested' as const,
    created_by_user_id: userId,
    created_at: toTime(tx.now),
    decided_by_user_id: null,
    decided_at: null,
  };
  await tx.db.insertInto('storage_purchases').values(row).execute();
  tx.changed({ observedClusterId: quote.clusterId });
  return purchaseOf(row);
}

export async function findPurchase(db: Reader, purchaseId: string): Promise<StoragePurchase | undefined> {
  const purchases = db.selectFrom('storage_purchases').selectAll();
  const row = await purchases.where('id', '=', purchaseId).executeTakeFirst();
  return row && purchaseOf(row);
}

/** Purchases, oldest first: an organization's, or all of them. */
export async function listPurchases(db: Reader, organizationId?: string): Promise<StoragePurchase[]> {
  let query = db.selectFrom('storage_purchases').selectAll();
  if (organizationId !== undefined) query = query.where('organization_id', '=', organizationId);
  return (await query.orderBy('created_at').orderBy('id').execute()).map(purchaseOf);
}

/** Decides a requested purchase; one that is decided already stays as it is. */
export async function updatePurchaseState(
  tx: Tx,
  decision: { purchaseId: string; clusterId: string; state: 'active' | 'declined'; userId: string },
): Promise<void> {
  await tx.db
    .updateTable('storage_purchases')
    .set({ state: decision.state, decided_by_user_id: decision.userId, decided_at: toTime(tx.now) })
    .where('id', '=', decision.purchaseId)
    .where('state', '=', 'requested')
    .execute();
  tx.changed({ observedClusterId: decision.clusterId });
}

function quoteOf(row: Selectable<StorageQuoteTable>): StorageQuote {
  return {
    id: row.id,
    organizationId: row.organization_id,
    clusterId: row.cluster_id,
    type: row.storage_type,
    bytes: row.bytes,
    currentBytes: row.current_bytes,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

function purchaseOf(row: Selectable<StoragePurchaseTable>): StoragePurchase {
  return {
    id: row.id,
    organizationId: row.organization_id,
    clusterId: row.cluster_id,
    quoteId: row.quote_id,
    type: row.storage_type,
    bytes: row.bytes,
    state: row.state,
    createdByUserId: row.created_by_user_id,
    createdAt: row.created_at,
    decidedByUserId: row.decided_by_user_id,
    decidedAt: row.decided_at,
  };
}

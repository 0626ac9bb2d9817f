/** Storage purchases and the quotes they come from. Active purchases stay: no query here takes capacity away. */
import type { Selectable } from 'kysely';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import {
  quoteLifetimeMs,
  type StorageOffer,
  type StoragePurchase,
  type StorageQuote,
  type StorageTarget,
  type StorageType,
} from '../../domain/clusters/storage-purchase.ts';
import { newId } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findRow, inCamelCase, insertRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { listReportedStorage } from './observations.ts';

/** The sum of a cluster's active purchases, in bytes, by type. */
export async function sumActivePurchases(
  db: Reader,
  clusterId: string,
): Promise<Record<StorageType, number>> {
  const sums = { ceph: 0, nfs: 0 };
  for (const { state, type, bytes } of await listPurchases(db, { cluster_id: clusterId }))
    if (state === 'active') sums[type] += bytes;
  return sums;
}

/** The facts about a cluster that decide whether storage can be bought for it. */
export async function findStorageTarget(db: Reader, { id, state }: Cluster): Promise<StorageTarget> {
  const { ceph, nfs } = await sumActivePurchases(db, id);
  const bought = (await listPurchases(db, { cluster_id: id })).filter((one) => one.state !== 'declined');
  const reported = await listReportedStorage(db, id);
  const types = (['ceph', 'weka', 'nfs'] as const).filter(
    (type) => bought.some((one) => one.type === type) || reported.some((storage) => storage[type]),
  );
  return { state, activeBytes: ceph + nfs, types };
}

export async function createQuote(
  tx: Tx,
  offer: StorageOffer & { currentBytes: number },
  userId: string,
): Promise<StorageQuote> {
  const id = newId('quote', tx.now);
  const expires_at = toTime(tx.now + quoteLifetimeMs);
  const row = { id, ...columnsOf(tx, offer, userId), current_bytes: offer.currentBytes, expires_at };
  await insertRow(tx.db, 'storage_quotes', row);
  return quoteOf(row);
}

export async function findQuote(
  db: Reader,
  id: string,
): Promise<(StorageQuote & { used: boolean }) | undefined> {
  const row = await findRow(db, 'storage_quotes', { id });
  return row && { ...quoteOf(row), used: (await listPurchases(db, { quote_id: id })).length > 0 };
}

/** Creates a purchase of a quote, in `requested`. The database allows one per quote. */
export async function createPurchase(tx: Tx, quote: StorageQuote, userId: string): Promise<StoragePurchase> {
  const undecided = { state: 'requested' as const, decided_by_user_id: null, decided_at: null };
  const id = newId('purchase', tx.now);
  const row = { id, quote_id: quote.id, ...columnsOf(tx, quote, userId), ...undecided };
  await insertRow(tx.db, 'storage_purchases', row);
  tx.changed({ kind: 'report', clusterId: row.cluster_id });
  return purchaseOf(row);
}

/** Purchases, oldest first: all of them, or those of one ID, cluster or quote. */
export async function listPurchases(
  db: Reader,
  where: { id?: string; cluster_id?: string; quote_id?: string } = {},
): Promise<StoragePurchase[]> {
  const all = db.selectFrom('storage_purchases').selectAll().orderBy('created_at').orderBy('id');
  return (await all.where((is) => is.and(where)).execute()).map(purchaseOf);
}

export async function decidePurchase(
  tx: Tx,
  purchase: StoragePurchase,
  { state, userId }: { state: 'active' | 'declined'; userId: string },
): Promise<StoragePurchase> {
  const decision = { state, decided_by_user_id: userId, decided_at: toTime(tx.now) };
  await updateRows(tx.db, 'storage_purchases', { id: purchase.id }, decision);
  tx.changed({ kind: 'report', clusterId: purchase.clusterId });
  return { ...purchase, state };
}

function columnsOf({ now }: Tx, { organizationId, clusterId, type, bytes }: StorageOffer, userId: string) {
  const offer = { organization_id: organizationId, cluster_id: clusterId, storage_type: type, bytes };
  return { ...offer, created_by_user_id: userId, created_at: toTime(now) };
}

function quoteOf({ storage_type: type, ...row }: Selectable<Schema['storage_quotes']>): StorageQuote {
  return { ...inCamelCase(row), type };
}

function purchaseOf({
  storage_type: type,
  ...row
}: Selectable<Schema['storage_purchases']>): StoragePurchase {
  return { ...inCamelCase(row), type };
}

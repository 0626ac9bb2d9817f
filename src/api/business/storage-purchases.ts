/** Storage purchases: quote → purchase → an operator's decision. Capacity only grows. */
import type { Cluster } from '../../domain/clusters/cluster.ts';
import {
  checkQuote,
  isUndecided,
  type StorageOffer,
  type StoragePurchase,
  type StorageTarget,
  totalWith,
} from '../../domain/clusters/storage-purchase.ts';
import { forbidden, notFound } from '../../domain/error.ts';
import { isId } from '../../domain/id.ts';
import { snakeCased } from '../../domain/present.ts';
import { findCluster, raiseDesiredGeneration, requireClusterOf } from '../../store/clusters/clusters.ts';
import * as purchases from '../../store/clusters/storage-purchases.ts';
import type { Tx } from '../../store/engine/index.ts';
import { type BusinessRequest, type CommandBody, writes } from './operation.ts';
import { operatorWrites, staffReads } from './operator/about.ts';
import { ownMembership } from './organizations.ts';

/** The total after buying more storage for a cluster. `invalid_state` if it cannot be bought for this one. */
export const quotePurchase = writes('quotePurchase', (_, request) => {
  const { storage_type: type, bytes } = request.body;
  const about = { target: 'quote', details: `${bytes} bytes of ${type}` };
  return buying(request, { meaning: [type, bytes], about }, async (tx, cluster, target) => {
    const total_bytes = totalWith(target, { type, bytes });
    const { id: clusterId, organizationId } = cluster;
    const offer = { organizationId, clusterId, type, bytes, currentBytes: target.activeBytes };
    const quote = await purchases.createQuote(tx, offer, request.caller.userId);
    const times = snakeCased(quote, ['createdAt', 'expiresAt', 'currentBytes']);
    const result = { ...offerBody(quote), ...times, total_bytes };
    return { result, about: { target: quote.id } };
  });
});

/** Requests a quoted purchase. `invalid_state` if the quote has expired, was used, or no longer holds. */
export const createPurchase = writes('createPurchase', (_, request) => {
  const quoteId = request.body.quote_id;
  const about = { target: isId('quote', quoteId) ? quoteId : 'purchase' };
  return buying(request, { meaning: [quoteId], about }, async (tx, cluster, target) => {
    const quote = await purchases.findQuote(tx.db, quoteId);
    if (quote?.organizationId !== cluster.organizationId || quote.clusterId !== cluster.id) {
      throw notFound('There is no such quote for this cluster.');
    }
    checkQuote(quote, target, request.now);
    const made = await purchases.createPurchase(tx, quote, request.caller.userId);
    const details = `${quote.bytes} bytes of ${quote.type} for ${cluster.name}, from ${quoteId}`;
    return { result: purchaseBody(made), about: { target: made.id, details } };
  });
});

function buying<T>(
  request: BusinessRequest<'quotePurchase' | 'createPurchase'>,
  what: Pick<CommandBody<T>, 'meaning' | 'about'>,
  apply: (tx: Tx, cluster: Cluster, target: StorageTarget) => ReturnType<CommandBody<T>['apply']>,
): CommandBody<T> {
  const { orgID: organizationId } = request.path;
  const clusterId = request.body.target_cluster_id.toLowerCase();
  return {
    meaning: [organizationId, clusterId, ...what.meaning],
    about: { ...what.about, organizationId, clusterId },
    async authorize({ db, now }, { userId }) {
      const { role } = await ownMembership(db, organizationId, userId, now);
      if (role !== 'member') return;
      throw forbidden('Only an owner or an admin of the organization can buy storage.');
    },
    async apply(tx) {
      const cluster = await requireClusterOf(tx.db, organizationId, clusterId);
      return apply(tx, cluster, await purchases.findStorageTarget(tx.db, cluster));
    },
  };
}

export const operatorListPurchases = staffReads<'operatorListPurchases'>(async ({ store }) => {
  return { purchases: (await purchases.listPurchases(store.read)).map(purchaseBody) };
});

/** Activates a requested purchase; an active one stays as it is. `invalid_state` for a declined one. */
export const operatorAcceptPurchase = deciding('operatorAcceptPurchase', 'active');
export const operatorDeclinePurchase = deciding('operatorDeclinePurchase', 'declined');

function deciding(
  operation: 'operatorAcceptPurchase' | 'operatorDeclinePurchase',
  state: 'active' | 'declined',
) {
  return operatorWrites(operation, async ({ store }, { caller, path: { purchaseID: purchaseId } }) => {
    const [known] = await purchases.listPurchases(store.read, { id: purchaseId });
    const { id = 'purchase', organizationId, clusterId, createdByUserId: subjectUserId } = known ?? {};
    return {
      meaning: [purchaseId],
      about: { target: id, organizationId, clusterId, subjectUserId },
      async apply(tx) {
        const [before] = await purchases.listPurchases(tx.db, { id: purchaseId });
        const cluster = before && (await findCluster(tx.db, before.clusterId));
        if (!cluster) throw notFound('There is no such purchase.');
        const done = (after: StoragePurchase, change: string) => ({
          result: purchaseBody(after),
          about: { details: `${before.bytes} bytes of ${before.type}: ${change}` },
        });
        if (!isUndecided(before.state, state)) return done(before, `stays ${state}`);
        if (state === 'active') {
          totalWith(await purchases.findStorageTarget(tx.db, cluster), before);
          await raiseDesiredGeneration(tx, cluster.id);
        }
        const after = await purchases.decidePurchase(tx, before, { state, userId: caller.userId });
        return done(after, `${before.state} → ${state}`);
      },
    };
  });
}

function offerBody({ id, organizationId, clusterId, type, bytes }: StorageOffer & { id: string }) {
  return { id, organization_id: organizationId, target_cluster_id: clusterId, storage_type: type, bytes };
}

function purchaseBody(purchase: StoragePurchase) {
  return {
    ...offerBody(purchase),
    ...snakeCased(purchase, ['quoteId', 'state', 'createdByUserId', 'createdAt']),
  };
}

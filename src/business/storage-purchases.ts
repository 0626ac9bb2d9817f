/** Storage purchases: quote → purchase → an operator's answer. Capacity only grows. */

import type { Cluster } from '../domain/cluster.ts';
import { DomainError } from '../domain/error.ts';
import { isId } from '../domain/id.ts';
import type { CommandReply } from '../domain/operation.ts';
import {
  checkDeclinable,
  checkQuote,
  isAcceptable,
  type StoragePurchase,
  type StorageQuote,
  totalWith,
} from '../domain/storage-purchase.ts';
import { findCluster, raiseDesiredGeneration } from '../store/clusters.ts';
import { runCommand } from '../store/commands.ts';
import type { Reader, Tx } from '../store/index.ts';
import { findMembership } from '../store/memberships.ts';
import * as purchases from '../store/storage-purchases.ts';
import { fromTime } from '../store/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';
import { requireOperator, requireStaff } from './operator/staff.ts';
import { organizationNotFound } from './organizations.ts';

/** The organization's purchases, oldest first. */
export async function listPurchases(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'listPurchases'>,
): Promise<BusinessReply<'listPurchases'>> {
  const membership = await findMembership(store.read, path.orgID, caller.userId, now);
  if (!membership) throw organizationNotFound();
  if (!membership.permissions.has('clusters.read')) {
    throw new DomainError('forbidden', 'This needs the permission clusters.read in the organization.');
  }
  return { purchases: (await purchases.listPurchases(store.read, path.orgID)).map(purchaseBody) };
}

/** What more storage for a cluster would come to. `invalid_state` where it cannot be bought for this one. */
export async function quotePurchase(
  { store }: BusinessDeps,
  { caller, path, body, command, now }: BusinessRequest<'quotePurchase'>,
): Promise<CommandReply<BusinessReply<'quotePurchase'>>> {
  const { orgID: organizationId } = path;
  const clusterId = body.target_cluster_id.toLowerCase();
  const { storage_type: type, bytes } = body;
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'quotePurchase',
      meaning: [organizationId, clusterId, type, bytes],
      about: {
        target: 'quote',
        organizationId,
        clusterId,
        details: `${bytes} bytes of ${type}`,
      },
      authorize: (tx) => requireBuyer(tx, organizationId, caller.userId),
      async apply(tx) {
        const target = await purchases.findStorageTarget(
          tx.db,
          await ownCluster(tx.db, organizationId, clusterId),
        );
        totalWith(target, { type, bytes });
        const currentBytes = target.activeBytes;
        const offer = { organizationId, clusterId, type, bytes, currentBytes, userId: caller.userId };
        const quote = await purchases.createQuote(tx, offer);
        return { result: quoteBody(quote), about: { target: quote.id } };
      },
    },
  );
}

/** Asks for what was quoted. `invalid_state` when the quote has expired, was used, or no longer holds. */
export async function createPurchase(
  { store }: BusinessDeps,
  { caller, path, body, command, now }: BusinessRequest<'createPurchase'>,
): Promise<CommandReply<BusinessReply<'createPurchase'>>> {
  const { orgID: organizationId } = path;
  const clusterId = body.target_cluster_id.toLowerCase();
  const quoteId = body.quote_id;
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'createPurchase',
      meaning: [organizationId, clusterId, quoteId],
      about: {
        target: isId('quote', quoteId) ? quoteId : 'purchase',
        organizationId,
        clusterId,
      },
      authorize: (tx) => requireBuyer(tx, organizationId, caller.userId),
      async apply(tx) {
        const cluster = await ownCluster(tx.db, organizationId, clusterId);
        const quote = await purchases.findQuote(tx.db, quoteId);
        if (quote?.organizationId !== organizationId || quote.clusterId !== clusterId) {
          throw new DomainError('not_found', 'There is no such quote for this cluster.');
        }
        const target = await purchases.findStorageTarget(tx.db, cluster);
        checkQuote({ ...quote, expiresAt: fromTime(quote.expiresAt) }, target, now);
        const made = await purchases.createPurchase(tx, quote, caller.userId);
        const details = `${quote.bytes} bytes of ${quote.type} for ${cluster.name}, from ${quoteId}`;
        return { result: purchaseBody(made), about: { target: made.id, details } };
      },
    },
  );
}

/** Every purchase, oldest first. */
export async function operatorListPurchases(
  { store }: BusinessDeps,
  { caller }: BusinessRequest<'operatorListPurchases'>,
): Promise<BusinessReply<'operatorListPurchases'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  return { purchases: (await purchases.listPurchases(store.read)).map(purchaseBody) };
}

/** Makes a requested purchase count; one that counts already stays as it is. `invalid_state` for a declined one. */
export async function operatorAcceptPurchase(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAcceptPurchase'>,
): Promise<CommandReply<BusinessReply<'operatorAcceptPurchase'>>> {
  return decide(deps, request, 'operatorAcceptPurchase', async (tx, purchase) => {
    if (!isAcceptable(purchase.state)) return false;
    const { id, clusterId } = purchase;
    const cluster = await findCluster(tx.db, clusterId);
    if (!cluster) throw purchaseNotFound();
    totalWith(await purchases.findStorageTarget(tx.db, cluster, id), purchase);
    const { userId } = request.caller;
    await purchases.updatePurchaseState(tx, { purchaseId: id, clusterId, state: 'active', userId });
    await raiseDesiredGeneration(tx, clusterId);
    return true;
  });
}

/** Turns a requested purchase down. `invalid_state` for one that is decided. */
export async function operatorDeclinePurchase(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorDeclinePurchase'>,
): Promise<CommandReply<BusinessReply<'operatorDeclinePurchase'>>> {
  return decide(deps, request, 'operatorDeclinePurchase', async (tx, { id, clusterId, state }) => {
    checkDeclinable(state);
    const { userId } = request.caller;
    await purchases.updatePurchaseState(tx, { purchaseId: id, clusterId, state: 'declined', userId });
    return true;
  });
}

/** Runs an operator's answer to a purchase; `apply` says whether it changed anything. */
async function decide(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAcceptPurchase' | 'operatorDeclinePurchase'>,
  operation: string,
  apply: (tx: Tx, purchase: StoragePurchase) => Promise<boolean>,
): Promise<CommandReply<BusinessReply<'operatorAcceptPurchase'>>> {
  const { purchaseID: purchaseId } = request.path;
  const known = await purchases.findPurchase(deps.store.read, purchaseId);
  const about = {
    target: known?.id ?? 'purchase',
    organizationId: known?.organizationId ?? null,
    clusterId: known?.clusterId ?? null,
    subjectUserId: known?.createdByUserId ?? null,
  };
  return runCommand(deps.store, request, {
    operation,
    meaning: [purchaseId],
    about,
    authorize: requireOperator,
    async apply(tx) {
      const purchase = await purchases.findPurchase(tx.db, purchaseId);
      if (!purchase) throw purchaseNotFound();
      const isChanged = await apply(tx, purchase);
      const decided = (await purchases.findPurchase(tx.db, purchaseId)) ?? purchase;
      const what = `${purchase.bytes} bytes of ${purchase.type}`;
      const details = `${what}: ${isChanged ? `${purchase.state} → ` : 'stays '}${decided.state}`;
      return { result: purchaseBody(decided), about: { details } };
    },
  });
}

async function requireBuyer({ db, now }: Tx, organizationId: string, userId: string): Promise<void> {
  const membership = await findMembership(db, organizationId, userId, now);
  if (!membership) throw organizationNotFound();
  if (membership.role === 'member') {
    throw new DomainError('forbidden', 'Only an owner or an admin of the organization can buy storage.');
  }
}

async function ownCluster(db: Reader, organizationId: string, clusterId: string): Promise<Cluster> {
  const cluster = await findCluster(db, clusterId);
  if (cluster?.organizationId === organizationId) return cluster;
  throw new DomainError('not_found', 'The organization has no such cluster.');
}

function purchaseNotFound(): DomainError {
  return new DomainError('not_found', 'There is no such purchase.');
}

function quoteBody(quote: StorageQuote) {
  return {
    id: quote.id,
    organization_id: quote.organizationId,
    storage_type: quote.type,
    bytes: quote.bytes,
    current_bytes: quote.currentBytes,
    created_at: quote.createdAt,
    expires_at: quote.expiresAt,
    target_cluster_id: quote.clusterId,
    total_bytes: quote.currentBytes + quote.bytes,
  };
}

function purchaseBody(purchase: StoragePurchase) {
  const { decidedByUserId, decidedAt } = purchase;
  return {
    id: purchase.id,
    organization_id: purchase.organizationId,
    quote_id: purchase.quoteId,
    storage_type: purchase.type,
    bytes: purchase.bytes,
    state: purchase.state,
    created_by_user_id: purchase.createdByUserId,
    created_at: purchase.createdAt,
    target_cluster_id: purchase.clusterId,
    ...(decidedByUserId === null ? {} : { decided_by_user_id: decidedByUserId }),
    ...(decidedAt === null ? {} : { decided_at: decidedAt }),
  };
}

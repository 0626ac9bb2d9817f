/** Storage purchases: quote → purchase → an operator's answer. Capacity only grows. */

import type { Cluster } from '../domain/cluster.ts';
import { DomainError } from '../domain/error.ts';
import { isId } from '../domain/id.ts';
import type { CommandReply } from '../domain/operation.ts';
import { checkDeclinable, checkQuote, isAcceptable, totalWith } from '../domain/storage-purchase.ts';
import { findCluster, raiseDesiredGeneration } from '../store/clusters.ts';
import { runCommand } from '../store/commands.ts';
import type { Reader, Tx } from '../store/index.ts';
import { findMembership } from '../store/members.ts';
import * as purchases from '../store/purchases.ts';
import { fromTime } from '../store/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';
import { operatorCommand } from './operator/command.ts';
import { requireStaff } from './operator/staff.ts';
import { organizationNotFound } from './organizations.ts';

/** The organization's purchases, oldest first. */
export async function listPurchases(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'listPurchases'>,
): Promise<BusinessReply<'listPurchases'>> {
  const membership = await findMembership(store.read, path.orgID, caller.userId);
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
    {
      operation: 'quotePurchase',
      headers: command,
      caller,
      request: [organizationId, clusterId, type, bytes],
      about: {
        target: 'quote',
        organization_id: organizationId,
        cluster_id: clusterId,
        details: `${bytes} bytes of ${type}`,
      },
      now,
    },
    {
      authorize: (tx) => requireBuyer(tx.db, organizationId, caller.userId),
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
    {
      operation: 'createPurchase',
      headers: command,
      caller,
      request: [organizationId, clusterId, quoteId],
      about: {
        target: isId('quote', quoteId) ? quoteId : 'purchase',
        organization_id: organizationId,
        cluster_id: clusterId,
      },
      now,
    },
    {
      authorize: (tx) => requireBuyer(tx.db, organizationId, caller.userId),
      async apply(tx) {
        const cluster = await ownCluster(tx.db, organizationId, clusterId);
        const quote = await purchases.findQuote(tx.db, quoteId);
        if (quote?.organization_id !== organizationId || quote.cluster_id !== clusterId) {
          throw new DomainError('not_found', 'There is no such quote for this cluster.');
        }
        const { storage_type: type, bytes, current_bytes: currentBytes, used } = quote;
        const expiresAt = fromTime(quote.expires_at);
        checkQuote(
          { type, bytes, currentBytes, expiresAt, used },
          await purchases.findStorageTarget(tx.db, cluster),
          now,
        );
        const made = await purchases.createPurchase(tx, quote, caller.userId);
        const details = `${bytes} bytes of ${type} for ${cluster.name}, from ${quoteId}`;
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
  const { now } = request;
  return decide(deps, request, 'operatorAcceptPurchase', async (tx, purchase) => {
    if (!isAcceptable(purchase.state)) return false;
    const { id, cluster_id: clusterId, storage_type: type, bytes } = purchase;
    const cluster = await findCluster(tx.db, clusterId);
    if (!cluster) throw purchaseNotFound();
    totalWith(await purchases.findStorageTarget(tx.db, cluster, id), { type, bytes });
    const { userId } = request.caller;
    await purchases.updatePurchaseState(tx, { purchaseId: id, state: 'active', userId });
    await raiseDesiredGeneration(tx, clusterId, now);
    return true;
  });
}

/** Turns a requested purchase down. `invalid_state` for one that is decided. */
export async function operatorDeclinePurchase(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorDeclinePurchase'>,
): Promise<CommandReply<BusinessReply<'operatorDeclinePurchase'>>> {
  return decide(deps, request, 'operatorDeclinePurchase', async (tx, { id, state }) => {
    checkDeclinable(state);
    const { userId } = request.caller;
    await purchases.updatePurchaseState(tx, { purchaseId: id, state: 'declined', userId });
    return true;
  });
}

/** Runs an operator's answer to a purchase; `apply` says whether it changed anything. */
async function decide(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAcceptPurchase' | 'operatorDeclinePurchase'>,
  operation: string,
  apply: (tx: Tx, purchase: purchases.StoragePurchase) => Promise<boolean>,
): Promise<CommandReply<BusinessReply<'operatorAcceptPurchase'>>> {
  const { purchaseID: purchaseId } = request.path;
  const known = await purchases.findPurchase(deps.store.read, purchaseId);
  const about = {
    target: known?.id ?? 'purchase',
    organization_id: known?.organization_id ?? null,
    cluster_id: known?.cluster_id ?? null,
    subject_user_id: known?.created_by_user_id ?? null,
  };
  return operatorCommand(deps, request, { operation, meaning: [purchaseId], about }, async (tx) => {
    const purchase = await purchases.findPurchase(tx.db, purchaseId);
    if (!purchase) throw purchaseNotFound();
    const isChanged = await apply(tx, purchase);
    const decided = (await purchases.findPurchase(tx.db, purchaseId)) ?? purchase;
    const what = `${purchase.bytes} bytes of ${purchase.storage_type}`;
    const details = `${what}: ${isChanged ? `${purchase.state} → ` : 'stays '}${decided.state}`;
    return { result: purchaseBody(decided), about: { details } };
  });
}

async function requireBuyer(db: Reader, organizationId: string, userId: string): Promise<void> {
  const membership = await findMembership(db, organizationId, userId);
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

function quoteBody({ cluster_id, created_by_user_id: _, ...quote }: purchases.StorageQuote) {
  const total_bytes = quote.current_bytes + quote.bytes;
  return { ...quote, target_cluster_id: cluster_id, total_bytes };
}

function purchaseBody({ cluster_id, decided_by_user_id, decided_at, ...rest }: purchases.StoragePurchase) {
  return {
    ...rest,
    target_cluster_id: cluster_id,
    ...(decided_by_user_id === null ? {} : { decided_by_user_id }),
    ...(decided_at === null ? {} : { decided_at }),
  };
}

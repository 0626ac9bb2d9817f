/**
 * What storage can be bought, and when. Each purchase adds to what a cluster has; there is no rule here, and must be
 * none, that takes away (contract: "Storage capacity can grow but never shrink").
 */
import { type ClusterState, isInService } from './cluster.ts';
import { DomainError } from './error.ts';

/** What a cluster can have. */
export const storageTypes = ['ceph', 'weka', 'nfs'] as const;

/** What can be bought; WEKA can be configured but cannot be bought. */
export const purchasableTypes = ['ceph', 'nfs'] as const;

export type StorageType = (typeof purchasableTypes)[number];
type ConfiguredType = (typeof storageTypes)[number];

export type PurchaseState = 'requested' | 'active' | 'declined';

/** How long a quote holds. */
export const quoteLifetimeMs = 15 * 60_000;

/** The most that the purchases of one cluster may come to: 4 PiB, which a JSON number still holds exactly. */
export const mostClusterBytes = 2 ** 52;

/** What matters of a cluster when storage is bought for it. */
export interface StorageTarget {
  state: ClusterState;
  /** What its active purchases come to. */
  activeBytes: number;
  /** What it has, or has asked for by another purchase. */
  types: readonly ConfiguredType[];
}

export interface StorageOffer {
  type: StorageType;
  bytes: number;
}

/** What an organization was told that more storage comes to; good for a while, and once. Times in RFC 3339. */
export interface StorageQuote extends StorageOffer {
  id: string;
  organizationId: string;
  clusterId: string;
  /** What the cluster's active purchases came to then. */
  currentBytes: number;
  createdAt: string;
  expiresAt: string;
}

export interface StoragePurchase extends StorageOffer {
  id: string;
  organizationId: string;
  clusterId: string;
  quoteId: string;
  state: PurchaseState;
  createdByUserId: string;
  createdAt: string;
  decidedByUserId: string | null;
  decidedAt: string | null;
}

/** What the cluster's purchases would come to. Throws `invalid_state` where this cannot be bought for it. */
export function totalWith(target: StorageTarget, { type, bytes }: StorageOffer): number {
  if (!isInService(target)) {
    throw refused(
      `The cluster is ${target.state}; storage can be bought while it is provisioning or active.`,
    );
  }
  const other = target.types.find((there) => excludes(there, type));
  if (other) {
    const [has, wanted] = [label[other], label[type]];
    throw refused(`The cluster has ${has} storage, or has asked for it; ${wanted} cannot go with it.`);
  }
  const total = target.activeBytes + bytes;
  if (total > mostClusterBytes) {
    const left = Math.max(0, mostClusterBytes - target.activeBytes);
    throw refused(
      `A cluster can have ${mostClusterBytes} bytes (4 PiB) at most; ${left} bytes can still be bought.`,
    );
  }
  return total;
}

/** Throws `invalid_state` when a quote no longer holds for its cluster. */
export function checkQuote(
  quote: StorageOffer & { currentBytes: number; expiresAt: number; used: boolean },
  target: StorageTarget,
  now: number,
): void {
  if (quote.used) throw refused('This quote was used for a purchase already; ask for a new quote.');
  if (now >= quote.expiresAt) throw refused('This quote has expired; ask for a new quote.');
  totalWith(target, quote);
  if (target.activeBytes !== quote.currentBytes) {
    throw refused('The storage of the cluster has grown since this quote; ask for a new quote.');
  }
}

/** Whether accepting changes anything: an active purchase is accepted already. Throws `invalid_state` for a declined one. */
export function isAcceptable(state: PurchaseState): boolean {
  if (state === 'declined') throw refused('This purchase was declined; it takes a new one.');
  return state === 'requested';
}

/** Throws `invalid_state` unless the purchase still waits for an answer. */
export function checkDeclinable(state: PurchaseState): void {
  if (state === 'active') throw refused('This purchase was accepted, and storage never shrinks.');
  if (state === 'declined') throw refused('This purchase was declined already.');
}

const label = { ceph: 'Ceph', weka: 'WEKA', nfs: 'NFS' } as const;

/** NFS excludes Ceph and WEKA, which can coexist. */
function excludes(one: ConfiguredType, other: ConfiguredType): boolean {
  return (one === 'nfs') !== (other === 'nfs');
}

function refused(message: string): DomainError {
  return new DomainError('invalid_state', message);
}

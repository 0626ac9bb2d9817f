/** What may be bought for a cluster. Each purchase adds; no rule takes away (contract: "can grow but never shrink"). */
import { invalidState } from '../error.ts';
import { type ClusterState, isInService } from './cluster.ts';

const names = { ceph: 'Ceph', weka: 'WEKA', nfs: 'NFS' } as const;
/** WEKA can be configured but cannot be bought. */
export type StorageType = 'ceph' | 'nfs';
export type PurchaseState = 'requested' | 'active' | 'declined';

export const quoteLifetimeMs = 15 * 60_000;

/** The most that the purchases of one cluster may come to: 4 PiB, which a JSON number still holds exactly. */
export const mostClusterBytes = 2 ** 52;

/** What matters of a cluster when storage is bought for it. */
export interface StorageTarget {
  state: ClusterState;
  activeBytes: number;
  /** What it has, or has asked for by a purchase. */
  types: readonly (keyof typeof names)[];
}

export interface StorageOffer {
  organizationId: string;
  clusterId: string;
  type: StorageType;
  bytes: number;
}

/** What an organization can have for a while, once; and what the cluster's active purchases came to then. Times in RFC 3339. */
export interface StorageQuote extends StorageOffer {
  id: string;
  currentBytes: number;
  createdAt: string;
  expiresAt: string;
}

export interface StoragePurchase extends StorageOffer {
  id: string;
  quoteId: string;
  state: PurchaseState;
  createdByUserId: string;
  createdAt: string;
}

/** What the cluster's purchases would come to. Throws `invalid_state` where this cannot be bought for it. */
export function totalWith(
  target: StorageTarget,
  { type, bytes }: Pick<StorageOffer, 'type' | 'bytes'>,
): number {
  if (!isInService(target)) {
    const rule = 'storage can be bought while it is provisioning or active.';
    throw invalidState(`The cluster is ${target.state}; ${rule}`);
  }
  // NFS excludes Ceph and WEKA, which can coexist.
  const other = target.types.find((there) => (there === 'nfs') !== (type === 'nfs'));
  if (other) {
    throw invalidState(
      `The cluster has ${names[other]} storage, or has asked for it; ${names[type]} cannot go with it.`,
    );
  }
  const left = mostClusterBytes - target.activeBytes;
  if (bytes > left) {
    const most = `${mostClusterBytes} bytes (4 PiB)`;
    throw invalidState(`A cluster can have ${most} at most; ${left} bytes can still be bought.`);
  }
  return target.activeBytes + bytes;
}

/** Throws `invalid_state` when a quote no longer holds for its cluster. */
export function checkQuote(
  quote: Pick<StorageQuote, 'type' | 'bytes' | 'currentBytes' | 'expiresAt'> & { used: boolean },
  target: StorageTarget,
  now: number,
): void {
  if (quote.used) throw invalidState('This quote was used for a purchase already; ask for a new quote.');
  if (now >= Date.parse(quote.expiresAt)) throw invalidState('This quote has expired; ask for a new quote.');
  totalWith(target, quote);
  if (target.activeBytes !== quote.currentBytes) {
    throw invalidState('The storage of the cluster has grown since this quote; ask for a new quote.');
  }
}

/** Whether a decision changes anything: accepting an active purchase does not. Throws `invalid_state` for others that are decided. */
export function isUndecided(state: PurchaseState, decision: 'active' | 'declined'): boolean {
  if (state === 'declined') throw invalidState('This purchase was declined; it takes a new one.');
  if (state === 'active' && decision === 'declined') {
    throw invalidState('This purchase was accepted, and storage never shrinks.');
  }
  return state === 'requested';
}

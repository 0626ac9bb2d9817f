/** Storage purchases of a cluster. Each one adds capacity; none removes it (contract: "can grow but never shrink"). */
import { invalidState } from '../error.ts';
import { type ClusterState, isInService } from './cluster.ts';

const names = { ceph: 'Ceph', weka: 'WEKA', nfs: 'NFS' } as const;
/** WEKA can be configured but not bought. */
export type StorageType = 'ceph' | 'nfs';
export type PurchaseState = 'requested' | 'active' | 'declined';

export const quoteLifetimeMs = 15 * 60_000;

/** The limit on the purchases of one cluster together: 4 PiB, which a JSON number still represents exactly. */
export const mostClusterBytes = 2 ** 52;

/** The facts of a cluster that decide on a purchase. */
export interface StorageTarget {
  state: ClusterState;
  activeBytes: number;
  /** The storage types that the cluster has, or that a purchase asked for. */
  types: readonly (keyof typeof names)[];
}

export interface StorageOffer {
  organizationId: string;
  clusterId: string;
  type: StorageType;
  bytes: number;
}

/** An offer that can be used once before it expires, with the sum of the cluster's active purchases at the time. Times in RFC 3339. */
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

/** The sum of the cluster's purchases with this one. Throws `invalid_state` if it cannot be bought for the cluster. */
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

/** Throws `invalid_state` if a quote is used, expired, or no longer fits its cluster. */
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

/** True if the decision changes the state; accepting an active purchase does not. Throws `invalid_state` for any other decided one. */
export function isUndecided(state: PurchaseState, decision: 'active' | 'declined'): boolean {
  if (state === 'declined') throw invalidState('This purchase was declined; it takes a new one.');
  if (state === 'active' && decision === 'declined') {
    throw invalidState('This purchase was accepted, and storage never shrinks.');
  }
  return state === 'requested';
}

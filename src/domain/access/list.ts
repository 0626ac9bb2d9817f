/**
 * The access list: whom the Slurm clusters of an organization must know (contract, "Cluster access list"). Each entry
 * follows from the present truth about one person alone.
 */
import { createHash } from 'node:crypto';
import { effectivePermissions, type Role } from './permission.ts';

/** How long a cluster's report counts as recent, in milliseconds (contract, "Observation freshness"). */
export const observationFreshnessMs = 120_000;

export interface Member {
  userId: string;
  username: string;
  role: Role;
  permissions: readonly string[];
  shell: string;
  keySetGeneration: number;
  keyFingerprints: readonly string[];
  goodKeys?: readonly string[];
}

export interface AccessListUser {
  userId: string;
  username: string;
  accessMode: 'use' | 'admin';
  desiredLoginState: 'ready' | 'waiting_for_key';
  keySetGeneration: number;
  keyFingerprints: readonly string[];
  shell: string;
}

/** The list of one cluster, and how far its delivery has come. A withdrawn one is empty. */
export interface AccessList {
  clusterId: string;
  generation: number;
  acceptedGeneration: number;
  desiredGeneration: number;
  isWithdrawn: boolean;
  /** RFC 3339. */
  updatedAt: string;
}

/** Whether a cluster's newest list names people, and Platform accepted it. */
export function isAccepted({ isWithdrawn, acceptedGeneration, generation }: AccessList): boolean {
  return !isWithdrawn && acceptedGeneration === generation;
}

/**
 * A member's entry: everyone who holds `clusters.ssh` by any path has one, with or without a key. Keys that lapsed are left
 * out, and the account stays for as long as there are any: that it goes ends jobs, which the passing of time must not.
 */
export function accessListUser(member: Member): AccessListUser | undefined {
  const held = effectivePermissions(member.role, member.permissions);
  if (!held.has('clusters.ssh')) return undefined;
  const { userId, username, keySetGeneration, keyFingerprints, shell } = member;
  return {
    userId,
    username,
    accessMode: held.has('clusters.ssh.admin') ? 'admin' : 'use',
    desiredLoginState: keyFingerprints.length > 0 ? 'ready' : 'waiting_for_key',
    keySetGeneration,
    keyFingerprints: member.goodKeys ?? keyFingerprints,
    shell,
  };
}

/** Whether a person's entry stands as it should; undefined: they have, or should have, none. */
export function isSameEntry(a: AccessListUser | undefined, b: AccessListUser | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    a.username === b.username &&
    a.accessMode === b.accessMode &&
    a.desiredLoginState === b.desiredLoginState &&
    a.keySetGeneration === b.keySetGeneration &&
    a.shell === b.shell &&
    a.keyFingerprints.length === b.keyFingerprints.length &&
    a.keyFingerprints.every((fingerprint, index) => fingerprint === b.keyFingerprints[index])
  );
}

/** A digest of a list, its users by ID; two lists are the same list exactly when their digests are equal. */
export function accessListHash(users: readonly Omit<AccessListUser, 'keyFingerprints'>[]): string {
  const hash = createHash('sha256');
  for (const user of users) {
    hash.update(
      `${user.userId}\0${user.username}\0${user.accessMode}\0${user.desiredLoginState}\0${user.keySetGeneration}\0${user.shell}\n`,
    );
  }
  return `sha256:${hash.digest('hex')}`;
}

/** The contract has `rejected` as well: Platform takes every list. */
export type AccessListState = 'pending' | 'accepted' | 'converged' | 'stale' | 'failed';

/** How far the delivery of a list has come. Times in milliseconds since 1970. */
export interface Delivery {
  generation: number;
  acceptedGeneration: number;
  observation:
    | { observedAt: number; manifestGeneration: number; failure: string | null; waiting: readonly unknown[] }
    | undefined;
  now: number;
}

/** The list's state: waiting for Platform, or what the cluster made of it. */
export function accessListState(delivery: Delivery): AccessListState {
  const { generation, acceptedGeneration, observation } = delivery;
  if (acceptedGeneration < generation) return 'pending';
  if (!observation) return 'accepted';
  if (!isRecent(observation.observedAt, delivery.now)) return 'stale';
  if (observation.failure !== null) return 'failed';
  return isEverywhere(observation, generation) ? 'converged' : 'accepted';
}

/** Whether people can rely on the list, and no host has an older one: who is not on it any more may have processes there. */
function isEverywhere(
  { manifestGeneration, waiting }: NonNullable<Delivery['observation']>,
  generation: number,
): boolean {
  return manifestGeneration >= generation && waiting.length === 0;
}

/** What the cluster itself last reported of the list; null when it never reported. */
export function observationState(delivery: Delivery): 'pending' | 'converged' | 'failed' | null {
  const { observation } = delivery;
  if (!observation) return null;
  if (observation.failure !== null) return 'failed';
  return isEverywhere(observation, delivery.generation) ? 'converged' : 'pending';
}

/** Whether a report made at `observedAt` still counts. */
export function isRecent(observedAt: number, now: number): boolean {
  return now - observedAt <= observationFreshnessMs;
}

/** Checks who may see an organization's clusters (contract, "Resource grant" and the Platform endpoints). */
import { type PermissionKey, requireHeld } from '../../domain/access/permission.ts';
import { type Cluster, isInService } from '../../domain/clusters/cluster.ts';
import { DomainError, forbidden, invalidState, notFound } from '../../domain/error.ts';
import { isUuid } from '../../domain/id.ts';
import type { OperationOf, OperationType, ReplyOf, Request } from '../../domain/operation.ts';
import { holdsStaffKey } from '../../domain/people/person.ts';
import { requireClusterOf } from '../../store/clusters/clusters.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { hasLiveGrant } from '../../store/organizations/grants.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { findOrganization } from '../../store/organizations/organizations.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { operations } from '../generated/platform.ts';

/** A cluster ID in lower case. Throws `invalid_cluster` if it is no UUID. */
export function requireClusterId(clusterId: string): string {
  if (!isUuid(clusterId)) throw new DomainError('invalid_cluster', 'A cluster ID is a UUID.');
  return clusterId.toLowerCase();
}

export type RequestContext = Pick<Request, 'caller' | 'now'>;
type ClusterRequest = RequestContext & { path: { clusterId: string }; query: { businessOrgId: string } };

/**
 * Whether a person may read every cluster of an organization: by permission, or as staff. Throws `not_found` if staff
 * name an organization that does not exist.
 */
export async function canReadClusters(
  db: Reader,
  { caller: { userId }, now }: RequestContext,
  organizationId: string,
): Promise<boolean> {
  const membership = await findMembership(db, organizationId, userId, now);
  if (membership?.permissions.has('clusters.read')) return true;
  if (!holdsStaffKey(await listStaffKeys(db, userId), 'staff.read')) return false;
  if (await findOrganization(db, organizationId)) return true;
  throw notFound('There is no such organization.');
}

/** Throws `forbidden` unless the caller holds the permission in the organization: grants and staff keys do not count. */
export async function requirePermission(
  db: Reader,
  { caller: { userId }, now }: RequestContext,
  organizationId: string,
  permission: PermissionKey,
): Promise<void> {
  const membership = await findMembership(db, organizationId, userId, now);
  requireHeld(membership?.permissions, permission);
}

/**
 * A cluster that the caller may see: by permission in the given organization, as staff, or by a live grant on it.
 * Throws `forbidden` before revealing whether the cluster exists, then `not_found`.
 */
export async function visibleCluster(db: Reader, request: ClusterRequest): Promise<Cluster> {
  const clusterId = requireClusterId(request.path.clusterId);
  const { businessOrgId: organizationId } = request.query;
  const allowed =
    (await canReadClusters(db, request, organizationId)) ||
    (await hasLiveGrant(db, request.caller.userId, clusterId, request.now));
  if (allowed) return requireClusterOf(db, organizationId, clusterId);
  throw forbidden('This needs clusters.read in the organization, or a grant on the cluster.');
}

export async function configurable({ read }: Store, request: ClusterRequest): Promise<Cluster> {
  const clusterId = requireClusterId(request.path.clusterId);
  const { businessOrgId: organizationId } = request.query;
  await requirePermission(read, request, organizationId, 'clusters.configure');
  return requireClusterOf(read, organizationId, clusterId);
}

/** Throws `invalid_state` for a cluster that takes no configuration. */
export function requireInService(cluster: Cluster): void {
  if (isInService(cluster)) return;
  throw invalidState(`The cluster is ${cluster.state}, not provisioning or active.`);
}

export function pageToken(list: string, id: string): string {
  return Buffer.from(`${list}\n${id}`).toString('base64url');
}

/** The ID after which the page begins. Throws `invalid_pagination` for anything but a token of this very list. */
export function readPageToken(list: string, token: string): string {
  const [from, id = ''] = Buffer.from(token, 'base64url').toString().split('\n');
  // Decoding also accepts text that encoding never produces, so a valid token must encode to itself again.
  if (from !== list || !isUuid(id) || pageToken(list, id) !== token) {
    throw new DomainError('invalid_pagination', '`after` is not a page token of this list.');
  }
  return id;
}

interface GatewayAddress {
  hostname: string;
  port: number;
  /** Valid host keys: the used one first, and during a key rotation the other one too. */
  hostKeys(): readonly [HostKey, ...HostKey[]];
  readonly fault?: string | undefined;
}

interface HostKey {
  publicKey: string;
  fingerprint: string;
}

export interface PlatformDeps {
  store: Store;
  gateway: GatewayAddress;
  /** The content of the discovery document (RFC 9728). */
  signIn: {
    platformUrl: string;
    businessUrl: string;
    issuer: string;
    audiences: readonly string[];
    cliClientId: string;
    /** Scopes to request from an issuer that does not support the scopes derived from audiences. */
    scopes?: readonly string[] | undefined;
  };
  /** The settings of sign-ins to the clusters' Kubernetes APIs; undefined if the installation offers none. */
  kubernetesLogin:
    | {
        clientId: string;
        usernameClaim: string;
        issuerAuthority?: string | undefined;
        offersOffline: () => Promise<boolean>;
      }
    | undefined;
}

export type Operation<Id extends keyof operations> = OperationOf<
  operations[Id] & OperationType,
  PlatformDeps
>;
export type PlatformRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type PlatformReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;

/**
 * The operations of the Business API, one function an `operationId` of openapi/business.yaml, a file a resource.
 * Owns what the API answers and refuses; knows nothing of HTTP (`http` mounts these) and of Platform.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads and commands of `store`.
 */
import type { OperationType, ReplyOf, Request } from '../domain/operation.ts';
import type { Store } from '../store/index.ts';
import { getCluster, getClusterAccess, listClusters } from './clusters.ts';
import { setLoginPreferences } from './login-preferences.ts';
import { getMe } from './me.ts';
import { getMemberPermissions, listMembers, setMemberPermissions } from './members.ts';
import type { operations } from './openapi.ts';
import { getOrganization } from './organizations.ts';
import { listPermissionProfiles } from './permission-profiles.ts';
import { getResourceAccess, listResourceGrants } from './resource-grants.ts';
import { listSshKeys, registerSshKey, revokeSshKey } from './ssh-keys.ts';

export const businessOperations = {
  getMe,
  setLoginPreferences,
  listResourceGrants,
  getResourceAccess,
  listPermissionProfiles,
  getOrganization,
  listMembers,
  getMemberPermissions,
  setMemberPermissions,
  listClusters,
  getCluster,
  getClusterAccess,
  listSshKeys,
  registerSshKey,
  revokeSshKey,
};

/** What every operation here works with. */
export interface BusinessDeps {
  store: Store;
}

export type BusinessRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type BusinessReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;

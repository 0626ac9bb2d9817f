/**
 * The operations of the Business API, one function an `operationId` of openapi/business.yaml, a file a resource.
 * Owns what the API answers and refuses; knows nothing of HTTP (`http` mounts these) and of Platform.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads and commands of `store`.
 */
import type { SignedHead } from '../domain/audit-head.ts';
import type { HostRules } from '../domain/host-settings.ts';
import type { KubernetesCheck } from '../domain/kubernetes-rights.ts';
import type { OperationType, ReplyOf, Request } from '../domain/operation.ts';
import type { Cluster } from '../store/clusters.ts';
import type { Store } from '../store/index.ts';
import { getCluster, getClusterAccess, listClusters } from './clusters.ts';
import { setLoginPreferences } from './login-preferences.ts';
import { operatorAdmitMachine, operatorListMachines, operatorQuarantineMachine } from './machines.ts';
import { getMe } from './me.ts';
import {
  getMemberPermissions,
  listMembers,
  operatorSetMemberPermissions,
  setMemberPermissions,
} from './members.ts';
import {
  addMember,
  operatorAddMember,
  operatorRemoveMember,
  operatorSetMemberRole,
  operatorSetMemberUsername,
  removeMember,
  setMemberRole,
  setMemberUsername,
} from './memberships.ts';
import type { operations } from './openapi.ts';
import { operatorGetAuditHead, operatorListAuditEntries, operatorListAuditHeads } from './operator/audit.ts';
import {
  operatorCheckCluster,
  operatorCreateCluster,
  operatorListClusters,
  operatorReleaseCluster,
} from './operator/clusters.ts';
import {
  type GatewayView,
  operatorCloseSession,
  operatorGetGateway,
  operatorListSessions,
} from './operator/gateway.ts';
import { operatorCreateGrant, operatorListGrants, operatorRevokeGrant } from './operator/grants.ts';
import { operatorListIdentities, operatorRebindIdentity } from './operator/identities.ts';
import { operatorApplyLab, operatorExportLab, operatorPlanLab } from './operator/lab.ts';
import {
  operatorCreateOrganization,
  operatorListMembers,
  operatorListOrganizations,
  operatorRetireOrganization,
  operatorUpdateOrganization,
} from './operator/organizations.ts';
import {
  operatorCreatePerson,
  operatorDeactivatePerson,
  operatorListPeople,
  operatorReactivatePerson,
  operatorSetPassword,
  operatorSetStaffKeys,
} from './operator/people.ts';
import { getOrganization, retireOrganization } from './organizations.ts';
import { listPermissionProfiles } from './permission-profiles.ts';
import {
  createPurchase,
  listPurchases,
  operatorAcceptPurchase,
  operatorDeclinePurchase,
  operatorListPurchases,
  quotePurchase,
} from './purchases.ts';
import {
  listReservations,
  operatorCreateReservation,
  operatorEndReservation,
  operatorListReservations,
} from './reservations.ts';
import { getResourceAccess, listResourceGrants } from './resource-grants.ts';
import { listSshKeys, registerSshKey, revokeSshKey } from './ssh-keys.ts';

export const businessOperations = {
  getMe,
  setLoginPreferences,
  listResourceGrants,
  getResourceAccess,
  listPermissionProfiles,
  getOrganization,
  retireOrganization,
  listMembers,
  getMemberPermissions,
  setMemberPermissions,
  addMember,
  setMemberRole,
  setMemberUsername,
  removeMember,
  listClusters,
  getCluster,
  getClusterAccess,
  listSshKeys,
  registerSshKey,
  revokeSshKey,
  quotePurchase,
  createPurchase,
  listPurchases,
  operatorListOrganizations,
  operatorCreateOrganization,
  operatorUpdateOrganization,
  operatorRetireOrganization,
  operatorListMembers,
  operatorAddMember,
  operatorSetMemberRole,
  operatorSetMemberUsername,
  operatorSetMemberPermissions,
  operatorRemoveMember,
  operatorListPeople,
  operatorListIdentities,
  operatorRebindIdentity,
  operatorCreatePerson,
  operatorSetStaffKeys,
  operatorSetPassword,
  operatorDeactivatePerson,
  operatorReactivatePerson,
  operatorListGrants,
  operatorCreateGrant,
  operatorRevokeGrant,
  operatorListClusters,
  operatorCreateCluster,
  operatorReleaseCluster,
  operatorCheckCluster,
  operatorListSessions,
  operatorCloseSession,
  operatorGetGateway,
  operatorListAuditEntries,
  operatorGetAuditHead,
  operatorListAuditHeads,
  operatorExportLab,
  operatorApplyLab,
  operatorPlanLab,
  operatorListPurchases,
  operatorAcceptPurchase,
  operatorDeclinePurchase,
  listReservations,
  operatorListReservations,
  operatorCreateReservation,
  operatorEndReservation,
  operatorListMachines,
  operatorAdmitMachine,
  operatorQuarantineMachine,
};

/** What every operation here works with. */
export interface BusinessDeps {
  store: Store;
  gateway: GatewayView;
  /** Signs the audit trail. */
  audit: { publicKey: string; sign(): Promise<SignedHead | undefined> };
  /** Hashes a password for the embedded issuer; undefined where people sign in elsewhere. */
  hashPassword: ((password: string) => Promise<string>) | undefined;
  /** Asks a cluster which rights the service has there. Throws `invalid_state` where there is nothing to ask. */
  checkCluster(cluster: Cluster): Promise<KubernetesCheck>;
  /** What a lab may ask of the service's own host. */
  hostRules: HostRules;
}

export type BusinessRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type BusinessReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;

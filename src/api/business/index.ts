/**
 * The operations of the Business API, one function an `operationId` of openapi/business.yaml, a file a resource.
 * Owns what the API answers and refuses; knows nothing of HTTP (`http` mounts these) and of Platform.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads and commands of `store`.
 */
import type { OperationsOf } from '../../domain/operation.ts';
import type { operations } from '../generated/business.ts';
import {
  approveAccessRequest,
  declineAccessRequest,
  listAccessRequests,
  listMyAccessRequests,
  requestAccess,
  withdrawAccessRequest,
} from './access-requests.ts';
import { getCluster, getClusterAccess, listClusters, listReservations } from './clusters.ts';
import { getResourceAccess, listMyKubernetesAccess, listResourceGrants } from './grants.ts';
import { setLoginPreferences } from './login-preferences.ts';
import { getMe } from './me.ts';
import { listMemberAccess, listOrganizationGrants } from './member-access.ts';
import {
  getMemberKubernetesAccess,
  getMemberPermissions,
  listMemberPermissions,
  setMemberPermissions,
} from './member-permissions.ts';
import { planMemberChanges } from './member-plan.ts';
import { addMember, listMembers, removeMember, setMemberRole, setMemberUsername } from './memberships.ts';
import type { BusinessDeps } from './operation.ts';
import { operatorGetAuditHead, operatorListAuditEntries, operatorListAuditHeads } from './operator/audit.ts';
import {
  operatorCheckCluster,
  operatorCreateCluster,
  operatorListClusters,
  operatorReleaseCluster,
} from './operator/clusters.ts';
import {
  operatorCloseSession,
  operatorGetGateway,
  operatorListPastSessions,
  operatorListSessions,
} from './operator/gateway.ts';
import { operatorCreateGrant, operatorListGrants, operatorRevokeGrant } from './operator/grants.ts';
import {
  operatorListIdentities,
  operatorRebindIdentity,
  operatorUnbindIdentity,
} from './operator/identities.ts';
import { operatorApplyLab, operatorExportLab, operatorPlanLab } from './operator/lab.ts';
import {
  operatorAdmitMachine,
  operatorListMachines,
  operatorQuarantineMachine,
} from './operator/machines.ts';
import {
  operatorCreateOrganization,
  operatorListOrganizations,
  operatorUpdateOrganization,
} from './operator/organizations.ts';
import {
  operatorCreatePerson,
  operatorDeactivatePerson,
  operatorErasePerson,
  operatorListPeople,
  operatorReactivatePerson,
  operatorSetPassword,
  operatorSetPersonEmail,
  operatorSetStaffKeys,
} from './operator/people.ts';
import { operatorGetInstallation, operatorListProblems } from './operator/problems.ts';
import { operatorListServers } from './operator/servers.ts';
import { getOrganization, retireOrganization } from './organizations.ts';
import { listPermissionProfiles } from './permission-profiles.ts';
import { listKeyClusters, listSshKeys, registerSshKey, revokeSshKey } from './ssh-keys.ts';
import { closeMySession, listMyPastSessions, listMyRefusals, listMySessions } from './ssh-sessions.ts';
import {
  createPurchase,
  operatorAcceptPurchase,
  operatorDeclinePurchase,
  operatorListPurchases,
  quotePurchase,
} from './storage-purchases.ts';

/** By their names in the document; the other way to call an operation (`x-alias-of`) is answered by that operation. */
export const businessOperations = {
  getMe,
  setLoginPreferences,
  listResourceGrants,
  listMyKubernetesAccess,
  getResourceAccess,
  listPermissionProfiles,
  getOrganization,
  retireOrganization,
  listMembers,
  getMemberKubernetesAccess,
  getMemberPermissions,
  listMemberPermissions,
  setMemberPermissions,
  listMemberAccess,
  listOrganizationGrants,
  planMemberChanges,
  requestAccess,
  listMyAccessRequests,
  withdrawAccessRequest,
  listAccessRequests,
  approveAccessRequest,
  declineAccessRequest,
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
  listKeyClusters,
  listMySessions,
  listMyPastSessions,
  closeMySession,
  listMyRefusals,
  quotePurchase,
  createPurchase,
  operatorListOrganizations,
  operatorCreateOrganization,
  operatorUpdateOrganization,
  operatorListPeople,
  operatorListIdentities,
  operatorRebindIdentity,
  operatorUnbindIdentity,
  operatorSetPersonEmail,
  operatorErasePerson,
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
  operatorListPastSessions,
  operatorCloseSession,
  operatorGetGateway,
  operatorGetInstallation,
  operatorListProblems,
  operatorListServers,
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
  operatorListMachines,
  operatorAdmitMachine,
  operatorQuarantineMachine,
} satisfies OperationsOf<operations, BusinessDeps, 'registerSshKeyForOrganization'>;

/**
 * The operations of the Business API, one function an `operationId` of openapi/business.yaml, a file a resource. The other way to
 * call an operation (`x-alias-of`) is answered by that operation. Owns what the API answers and refuses; knows nothing of HTTP
 * (`http` mounts these) and of Platform.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads and commands of `store`.
 */
export {
  approveAccessRequest,
  declineAccessRequest,
  listAccessRequests,
  listMyAccessRequests,
  requestAccess,
  withdrawAccessRequest,
} from './access-requests.ts';
export { getCluster, getClusterAccess, listClusters, listReservations } from './clusters.ts';
export { getResourceAccess, listMyKubernetesAccess, listResourceGrants } from './grants.ts';
export { getMe, setLoginPreferences } from './me.ts';
export { listMemberAccess, listOrganizationGrants } from './member-access.ts';
export {
  getMemberKubernetesAccess,
  getMemberPermissions,
  listMemberPermissions,
  listPermissionProfiles,
  setMemberPermissions,
} from './member-permissions.ts';
export { planMemberChanges } from './member-plan.ts';
export { addMember, listMembers, removeMember, setMemberRole, setMemberUsername } from './memberships.ts';
export { operatorGetAuditHead, operatorListAuditEntries, operatorListAuditHeads } from './operator/audit.ts';
export {
  operatorCheckCluster,
  operatorCreateCluster,
  operatorListClusters,
  operatorReleaseCluster,
} from './operator/clusters.ts';
export {
  operatorCloseSession,
  operatorGetGateway,
  operatorListPastSessions,
  operatorListSessions,
} from './operator/gateway.ts';
export { operatorCreateGrant, operatorListGrants, operatorRevokeGrant } from './operator/grants.ts';
export {
  operatorListIdentities,
  operatorRebindIdentity,
  operatorUnbindIdentity,
} from './operator/identities.ts';
export {
  operatorGetInstallation,
  operatorListProblems,
  operatorListServers,
} from './operator/installation.ts';
export { operatorApplyLab, operatorExportLab, operatorPlanLab } from './operator/lab.ts';
export {
  operatorAdmitMachine,
  operatorListMachines,
  operatorQuarantineMachine,
} from './operator/machines.ts';
export {
  operatorCreateOrganization,
  operatorListOrganizations,
  operatorUpdateOrganization,
} from './operator/organizations.ts';
export {
  operatorCreatePerson,
  operatorDeactivatePerson,
  operatorErasePerson,
  operatorListPeople,
  operatorReactivatePerson,
  operatorSetPassword,
  operatorSetPersonEmail,
  operatorSetStaffKeys,
} from './operator/people.ts';
export { getOrganization, retireOrganization } from './organizations.ts';
export { listKeyClusters, listSshKeys, registerSshKey, revokeSshKey } from './ssh-keys.ts';
export { closeMySession, listMyPastSessions, listMyRefusals, listMySessions } from './ssh-sessions.ts';
export {
  createPurchase,
  operatorAcceptPurchase,
  operatorDeclinePurchase,
  operatorListPurchases,
  quotePurchase,
} from './storage-purchases.ts';

/**
 * The operations of the Business API, one function an `operationId` of openapi/business.yaml, a file a resource. An alias
 * (`x-alias-of`) is answered by its original operation. Owns the API's replies and refusals; knows nothing of HTTP (`http`
 * mounts these) and of Platform.
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
export * from './access-review.ts';
export {
  getCluster,
  getClusterAccess,
  listClusters,
  listReservations,
  operatorAdmitMachine,
  operatorCheckCluster,
  operatorCreateCluster,
  operatorListClusters,
  operatorListMachines,
  operatorQuarantineMachine,
  operatorReleaseCluster,
  operatorSurveyCluster,
} from './clusters.ts';
export {
  getResourceAccess,
  listMyKubernetesAccess,
  listResourceGrants,
  operatorCreateGrant,
  operatorListGrants,
  operatorRevokeGrant,
} from './grants.ts';
export { getMe, setLoginPreferences } from './me.ts';
export { listMemberAccess, listOrganizationGrants } from './member-access.ts';
export {
  getMemberKubernetesAccess,
  getMemberPermissions,
  listMemberPermissions,
  listPermissionProfiles,
  setMemberPermissions,
} from './member-permissions.ts';
export { planMemberChanges, planSshKeyChange } from './member-plan.ts';
export {
  addMember,
  listMembers,
  listTeams,
  removeMember,
  removeTeam,
  setMemberRole,
  setMemberUsername,
  setTeam,
} from './memberships.ts';
export * from './my-access.ts';
export * from './operator/audit.ts';
export { operatorListGroups, operatorPlanGroups } from './operator/groups.ts';
export {
  operatorGetInstallation,
  operatorListProblems,
  operatorListServers,
} from './operator/installation.ts';
export * from './operator/lab.ts';
export * from './operator/people.ts';
export {
  getOrganization,
  operatorCreateOrganization,
  operatorListOrganizations,
  operatorUpdateOrganization,
  retireOrganization,
} from './organizations.ts';
export * from './ssh-keys.ts';
export { closeMySession, listMyPastSessions, listMyRefusals, listMySessions } from './ssh-sessions.ts';
export * from './storage-purchases.ts';

/**
 * What each operation of the audit trail is in words, behind the name of who did it: the verb as it was done and as it was tried,
 * then the rest. `{subject}` is the person it was done to; what is in brackets is left out where the entry does not say it.
 */
const ofPeople = {
  registerSshKey: 'added|add an SSH key[ ({details})]',
  renameSshKey: 'named|name an SSH key[ ({details})]',
  revokeSshKey: 'revoked|revoke an SSH key[ ({details})]',
  setLoginPreferences: 'set|set the login shell[ to {details}]',
  closeMySession: 'closed|close an own SSH session[ on {cluster}]',
  changeOwnPassword: 'changed|change the own password',
  usePasswordLink: 'set|set a password by the link of an operator',
  setUpSecondFactor: 'enabled|enable a second factor',
  renewRecoveryCodes: 'made|make new recovery codes',
  removeSecondFactor: 'removed|remove the own second factor',
  signOutEverywhere: 'ended|end all their own sign-ins',
  bindIdentity: 'signed|sign in for the first time',
  followEmail: 'changed|change the own address[: {details}]',
  joinByDomain: 'added|add {subject}[ to {organization}] by the domain of the address',
  followGroups: 'changed|change what {subject} has[ in {organization}] by groups[: {details}]',
  requestAccess: 'requested|request access[: {details}][ on {cluster}][ in {organization}]',
  withdrawAccessRequest: 'withdrew|withdraw a request for access[: {details}]',
  'ssh.login.refused': 'logged|log in over SSH[ to {cluster}]',
  'ssh.session.opened': 'logged|log in over SSH[ to {cluster}]',
  'ssh.session.closed': '’s|’s SSH session[ on {cluster}] ended',
  furtherRefusals: 'had|have further attempts refused within a minute[: {details}]',
};

const ofLabs = {
  addMember: 'added|add {subject} to {organization}[ as {role}]',
  setMemberRole: 'changed|change the role of {subject}[ to {after}][ in {organization}]',
  setMemberUsername: 'set|set the login name of {subject}[ to {after}][ in {organization}]',
  setMemberPermissions: 'set|set the permissions of {subject}[ in {organization}]',
  removeMember: 'removed|remove {subject} from {organization}',
  endReviewedAccess: 'limited|limit the access of {subject}[ in {organization}][: {details}]',
  approveAccessRequest: 'approved|approve a request for access of {subject}[ on {cluster}]',
  declineAccessRequest: 'declined|decline a request for access of {subject}[ ({details})][ on {cluster}]',
  quotePurchase: 'asked|ask for the price of storage[ on {cluster}][: {details}]',
  createPurchase: 'ordered|order storage[ on {cluster}][: {details}]',
  retireOrganization: 'retired|retire {organization}',
  setSchedulerConfiguration: 'changed|change the Slurm configuration of {cluster}[ ({details})]',
  setDefaultSchedulerConfiguration:
    'changed|change the Slurm configuration of new clusters[ in {organization}][ ({details})]',
};

const ofOperators = {
  operatorCreateOrganization: 'created|create the organization[ {name}]',
  operatorUpdateOrganization: 'changed|change {organization}[: {details}]',
  operatorCreatePerson: 'created|create an account for {subject}',
  operatorSetStaffKeys: 'set|set the staff keys of {subject}[ to {after}]',
  operatorSetPassword: 'set|set a new password for {subject}',
  operatorCreatePasswordLink: 'made|make a link for {subject} to set a password',
  operatorResetSecondFactor: 'took|take the second factor of {subject}[: {details}]',
  operatorRebindIdentity: 'changed|change the sign-in of {subject}[: {details}]',
  operatorUnbindIdentity: 'took|take a sign-in from {subject}[: {details}]',
  operatorSetPersonEmail: 'changed|change the address of {subject}[ to {after}]',
  operatorSetSignInExemption: 'let|let access of {subject} last without a sign-in[: {details}]',
  operatorErasePerson: 'erased|erase {subject}',
  operatorDeactivatePerson: 'deactivated|deactivate {subject}',
  operatorReactivatePerson: 'reactivated|reactivate {subject}',
  operatorCreateGrant: 'gave|give {subject} {relation}[ on {cluster}]',
  operatorRevokeGrant: 'took|take {relation} from {subject}[ on {cluster}]',
  operatorCreateCluster: 'created|create the cluster[ {name}]',
  operatorReleaseCluster: 'took|take {cluster} out of service',
  operatorAdmitMachine: 'admitted|admit a machine[ of {cluster}][: {details}]',
  operatorQuarantineMachine: 'quarantined|quarantine a machine[ of {cluster}][: {details}]',
  operatorAcceptPurchase: 'accepted|accept an order of storage[ on {cluster}][: {details}]',
  operatorDeclinePurchase: 'declined|decline an order of storage[ on {cluster}][: {details}]',
  operatorCloseSession: 'closed|close an SSH session of {subject}[ on {cluster}]',
  operatorApplyLab: 'applied|apply a lab file[: {details}]',
};

const ofTheHost = {
  createInstallation: 'created|create the installation[ from {target}]',
  bootstrap: 'made|make {subject} an operator',
  newKey: 'made|make a new[ {target}] key[ ({details})]',
  rotateSecretsKey: 'encrypted|encrypt the secrets with another key[, {target}]',
  acceptAuditBreak: 'accepted|accept the break of the audit trail[ at entry {target}]',
  deleteAuditEntries: 'deleted|delete the old audit entries[ {target}]',
};

/** The steps of a lab file. */
const kinds = ['person', 'organization', 'member', 'cluster', 'grant'] as const;
const stepsOf = (kind: (typeof kinds)[number]) => ({
  [`operatorApplyLab.${kind}.create`]: `added|add the ${kind}[ {target}] by lab file[ ({details})]`,
  [`operatorApplyLab.${kind}.update`]: `changed|change the ${kind}[ {target}] by lab file[ ({details})]`,
  [`operatorApplyLab.${kind}.remove`]: `removed|remove the ${kind}[ {target}] by lab file[ ({details})]`,
});

/** By operation. */
export const phrases: Readonly<Record<string, string>> = {
  ...ofPeople,
  ...ofLabs,
  ...ofOperators,
  ...Object.assign({}, ...kinds.map(stepsOf)),
  ...ofTheHost,
};

/** Every operation of Business and every write of Platform: who may, and a request of it that each of them can make. */
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, beta, eventually, type TestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

export const people = ['ada', 'amy', 'max', 'dora', 'bob', 'oda', 'root', 'rita', 'otto'] as const;
export type Name = (typeof people)[number];

export const somePassword = 'correct horse battery staple';
const simulated = { computeNodes: 1, gpusPerNode: 1, applyMs: 20 };
const at = (name: Name) => `${name}@physics.example`;

/** An owner, an admin, three members with less, the owner of another organization, and staff of each kind. */
export const lab: Lab = {
  users: [
    { email: at('root'), staff: ['staff.operate'] },
    { email: at('rita'), staff: ['staff.read'] },
    { email: at('otto'), staff: ['staff.audit'] },
  ],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [
        { email: at('ada'), role: 'owner', username: 'ada' },
        { email: at('amy'), role: 'admin', username: 'amy' },
        {
          email: at('max'),
          role: 'member',
          username: 'max',
          permissions: ['members.manage', 'reservations.read'],
        },
        { email: at('dora'), role: 'member', username: 'dora', permissions: ['clusters.configure'] },
        { email: at('bob'), role: 'member', username: 'bob', permissions: ['clusters.read'] },
      ],
    },
    { slug: 'other', name: 'Other', members: [{ email: at('oda'), role: 'owner' }] },
  ],
  clusters: [
    { name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk', simulated },
    { name: 'beta', id: beta, organization: 'physics', scheduler: 'kubernetes', simulated },
  ],
};

/** What the requests of the table are made from. */
export interface Given {
  service: TestApp;
  org: string;
  ids: ReadonlyMap<string, string>;
  /** Of each person, good for as long as the test lasts. */
  tokens: ReadonlyMap<string, string>;
  /** Another number each time, for names that are not taken. */
  next(): number;
  /** Writes what a request needs beforehand; what it answers. */
  make(as: Name, path: string, body?: object, method?: string): Promise<Made>;
}
// biome-ignore lint/suspicious/noExplicitAny: replies are checked against the documents by the service itself
type Made = any;

/** A request that nobody has made yet, and that means something else than the ones before. */
export interface Wish {
  path?: Record<string, string>;
  query?: string;
  body?: object;
}

export interface Row {
  may: readonly Name[];
  /** What the others are answered; 403 where they are not named. */
  refused?: Partial<Record<Name, number>>;
  wish(given: Given, as: Name): Promise<Wish> | Wish;
  /** What an unknown ID is answered in the place of each in the path, where that is not 404. */
  unknown?: Record<string, number>;
  /** The ID in its path says nothing. */
  takesAnyId?: true;
  /** What those who may are answered, where the installation of the test does not do it. */
  answers?: number;
  /** A plan or a check: writes nothing. */
  writesNothing?: true;
}

const outsiders: readonly Name[] = ['oda', 'rita', 'otto'];
const absent = (names: readonly Name[]) => Object.fromEntries(names.map((name) => [name, 404]));
const ofOperators = { may: ['root'] } as const;
/** What changes nothing is for who may read. */
const ofReaders = { may: ['root', 'rita'] } as const;
/** Of the organization's owner and admin, and operators. */
const ofManagers = { may: ['ada', 'amy', 'root'], refused: absent(outsiders) } as const;
/** Of the organization's owner, and operators. */
const ofOwners = { may: ['ada', 'root'], refused: absent(outsiders) } as const;
/** Of the owner and the admin alone. */
const ofAdmins = { may: ['ada', 'amy'], refused: absent([...outsiders, 'root']) } as const;
/** Bob's own: of everybody else, members or not, it is as if it were not there. */
const ofBob = { may: ['bob'], refused: absent(people) } as const;
/** Who manages members, and holds what is asked for; no operators. */
const ofDeciders = { may: ['ada', 'amy', 'max'], refused: absent([...outsiders, 'root']) } as const;
const ofConfigurers = { may: ['ada', 'amy', 'dora'] } as const;

async function addPerson({ make, next }: Given): Promise<{ id: string; email: string }> {
  const email = `person-${next()}@physics.example`;
  const { id } = await make('root', '/operator/people', { email });
  return { id, email };
}

async function addMember({ make, next, org }: Given, more: object = {}): Promise<string> {
  const body = { email: `member-${next()}@physics.example`, ...more };
  return (await make('ada', `/organizations/${org}/members`, body)).user_id;
}

async function addTeam({ make, next, org }: Given): Promise<string> {
  const path = `/organizations/${org}/teams/team-${next()}`;
  return (await make('ada', path, { members: [] }, 'PUT')).name;
}

export async function addKey({ make }: Given): Promise<string> {
  return (await make('bob', '/me/ssh-keys', { public_key: newPublicKey() })).ssh_key.id;
}

/** An organization without clusters, with the same people in it. */
async function addOrganization({ make, next }: Given): Promise<string> {
  const slug = `org-${next()}`;
  const body = { slug, display_name: slug, owner_email: at('ada') };
  const { id } = (await make('root', '/operator/organizations', body)).organization;
  for (const [name, role] of [
    ['amy', 'admin'],
    ['max', 'member'],
    ['dora', 'member'],
    ['bob', 'member'],
  ] as const) {
    await make('root', `/organizations/${id}/members`, { email: at(name), role });
  }
  return id;
}

/** A member's who holds nothing, for what all who may decide hold. */
async function addAccessRequest({ service, make, next, org }: Given): Promise<Record<string, string>> {
  const as = `asker-${next()}`;
  await make('ada', `/organizations/${org}/members`, { email: `${as}@physics.example` });
  const body = { permissions: ['reservations.read'] };
  const reply = await service.write(`/organizations/${org}/access-requests`, { as, body });
  return { requestID: reply.body.id };
}

/** As only a few may be open at a time. */
async function withdrawAll({ service }: Given, as: Name): Promise<void> {
  const { body } = await service.business('/me/access-requests', { as });
  for (const { id, state } of body.requests) {
    if (state === 'open') await service.write(`/me/access-requests/${id}/withdraw`, { as });
  }
}

const wantsAccess = ({ next }: Given) => ({ permissions: ['clusters.kubernetes'], hours: next() });

/** No gateway has a session here: whoever may close it is told so. */
const noSession = { answers: 404, wish: () => ({ path: { sessionID: 'session' } }) };

const newGrant = ({ next }: Given) => ({
  ...{ email: `guest-${next()}@elsewhere.example`, cluster_id: beta, relation: 'kubernetes.viewer' },
});
async function addGrant(given: Given): Promise<Record<string, string>> {
  return { grantID: (await given.make('root', '/operator/grants', newGrant(given))).grant.id };
}

const newCluster = ({ next }: Given) => ({
  ...{ name: `c-${next()}`, organization: 'physics', scheduler: 'kubernetes', simulated },
});

async function addMachine(given: Given): Promise<Record<string, string>> {
  const { service, make } = given;
  const { id } = (await make('root', '/operator/clusters', newCluster(given))).cluster;
  const { body } = await eventually(
    () => service.business(`/operator/clusters/${id}/machines`, { as: 'root' }),
    (reply) => reply.body.machines.length > 0,
  );
  return { machineID: body.machines[0].id };
}

const newQuote = ({ next }: Given) => ({ target_cluster_id: alpha, storage_type: 'ceph', bytes: next() });
async function quoteOf(given: Given) {
  const { id } = await given.make('ada', `/organizations/${given.org}/purchases/quotes`, newQuote(given));
  return { target_cluster_id: alpha, quote_id: id };
}

async function addPurchase(given: Given): Promise<Record<string, string>> {
  const body = await quoteOf(given);
  return { purchaseID: (await given.make('ada', `/organizations/${given.org}/purchases`, body)).id };
}

const onMember = (body: (given: Given) => object | undefined, more: object = {}) => ({
  wish: async (given: Given): Promise<Wish> => {
    const path = { userID: await addMember(given, more) };
    const sent = body(given);
    return sent ? { path, body: sent } : { path };
  },
});
const onPerson = (body?: (given: Given) => object) => ({
  ...ofOperators,
  wish: async (given: Given): Promise<Wish> => {
    const path = { userID: (await addPerson(given)).id };
    return body ? { path, body: body(given) } : { path };
  },
});
/** People sign in with another issuer here. */
const onIssuer = { ...onPerson(), answers: 409 };
const onPersonAway = {
  ...ofOperators,
  wish: async (given: Given): Promise<Wish> => {
    const { id: userID } = await addPerson(given);
    await given.make('root', `/operator/people/${userID}/deactivate`);
    return { path: { userID } };
  },
};
const planned = { writesNothing: true } as const;
/** For whom a rule says so, with a body and nothing of its own in the path. */
const sends = (rule: Pick<Row, 'may' | 'refused'>, body: (given: Given) => object): Row => ({
  ...{ ...rule, wish: (given) => ({ body: body(given) }) },
});
const newKey = { may: people, wish: () => ({ body: { public_key: newPublicKey() } }) };
const configuration = ({ org, next }: Given): Wish => ({
  query: `?businessOrgId=${org}`,
  body: { slurmExtraConfig: `# ${next()}` },
});
const newEmail = ({ next }: Given) => ({ email: `new-${next()}@physics.example` });
const labOf = (given: Given) => ({ lab: { users: [newEmail(given)] } });
const identity = ({ next }: Given) => ({ issuer: 'https://issuer.example', subject: `s-${next()}` });

/** By the operation's name in its document. */
export const rows: Record<string, Row> = {
  registerSshKey: newKey,
  registerSshKeyForOrganization: { ...newKey, takesAnyId: true },
  revokeSshKey: { ...ofBob, wish: async (given) => ({ path: { keyID: await addKey(given) } }) },
  renameSshKey: {
    ...ofBob,
    wish: async (given) => ({ path: { keyID: await addKey(given) }, body: { label: `l-${given.next()}` } }),
  },
  closeMySession: { may: people, ...noSession },
  setLoginPreferences: {
    may: people,
    wish: async ({ service }, as) => {
      const { user } = (await service.business('/me', { as })).body;
      return { body: { shell: user.login_shell === '/bin/zsh' ? '/bin/bash' : '/bin/zsh' } };
    },
  },
  addMember: sends(ofManagers, newEmail),
  planMemberChanges: {
    ...sends(ofManagers, (given) => ({ changes: [{ change: 'add', ...newEmail(given) }] })),
    ...planned,
  },
  setMemberPermissions: {
    may: ['ada', 'amy', 'max', 'root'],
    refused: absent(outsiders),
    ...onMember(() => ({ permissions: ['reservations.read'] })),
  },
  requestAccess: {
    may: ['max', 'dora', 'bob'],
    // Who holds everything asks for nothing.
    refused: { ...absent([...outsiders, 'root']), ada: 409, amy: 409 },
    wish: async (given, as) => {
      await withdrawAll(given, as);
      return { body: wantsAccess(given) };
    },
  },
  withdrawAccessRequest: {
    ...ofBob,
    wish: async (given) => {
      await withdrawAll(given, 'bob');
      const path = `/organizations/${given.org}/access-requests`;
      return { path: { requestID: (await given.make('bob', path, wantsAccess(given))).id } };
    },
  },
  approveAccessRequest: {
    ...ofDeciders,
    wish: async (given) => ({ path: await addAccessRequest(given), body: {} }),
  },
  declineAccessRequest: { ...ofDeciders, wish: async (given) => ({ path: await addAccessRequest(given) }) },
  setMemberRole: { ...ofManagers, ...onMember(() => ({ role: 'admin' })) },
  setMemberUsername: { ...ofManagers, ...onMember(({ next }) => ({ username: `u${next()}` })) },
  removeMember: { ...ofManagers, ...onMember(() => undefined) },
  setTeam: {
    ...ofOwners,
    wish: ({ next }) => ({ path: { team: `team-${next()}` }, body: { members: [] } }),
    unknown: { team: 400 },
  },
  removeTeam: { ...ofOwners, wish: async (given) => ({ path: { team: await addTeam(given) } }) },
  createPurchase: { ...ofAdmins, wish: async (given) => ({ body: await quoteOf(given) }) },
  quotePurchase: sends(ofAdmins, newQuote),
  retireOrganization: {
    may: ['ada', 'root'],
    refused: absent(outsiders),
    wish: async (given) => ({ path: { orgID: await addOrganization(given) } }),
  },
  operatorCreateOrganization: sends(ofOperators, ({ next }) => ({
    ...{ slug: `o-${next()}`, display_name: 'O', owner_email: at('oda') },
  })),
  operatorUpdateOrganization: sends(ofOperators, ({ next }) => ({ display_name: `Physics ${next()}` })),
  operatorCreatePerson: sends(ofOperators, newEmail),
  operatorSetStaffKeys: onPerson(() => ({ staff_keys: ['staff.read'] })),
  operatorSetPassword: { ...onIssuer, ...onPerson(() => ({ password: somePassword })) },
  operatorCreatePasswordLink: onIssuer,
  operatorResetSecondFactor: onIssuer,
  operatorRebindIdentity: onPerson(identity),
  operatorUnbindIdentity: {
    ...ofOperators,
    wish: async (given) => {
      const { id: userID } = await addPerson(given);
      const body = identity(given);
      await given.make('root', `/operator/people/${userID}/identities`, body, 'PUT');
      return { path: { userID }, body };
    },
  },
  operatorSetPersonEmail: onPerson(({ next }) => ({ email: `moved-${next()}@physics.example` })),
  operatorSetSignInExemption: onPerson(() => ({ until: null })),
  operatorErasePerson: onPersonAway,
  operatorDeactivatePerson: onPerson(),
  operatorReactivatePerson: onPersonAway,
  operatorCreateGrant: sends(ofOperators, newGrant),
  operatorRevokeGrant: { ...ofOperators, wish: async (given) => ({ path: await addGrant(given) }) },
  operatorCreateCluster: sends(ofOperators, newCluster),
  operatorReleaseCluster: {
    ...ofOperators,
    wish: async (given) => {
      const { cluster } = await given.make('root', '/operator/clusters', newCluster(given));
      return { path: { clusterID: cluster.id } };
    },
  },
  operatorAdmitMachine: { ...ofOperators, wish: async (given) => ({ path: await addMachine(given) }) },
  operatorQuarantineMachine: { ...ofOperators, wish: async (given) => ({ path: await addMachine(given) }) },
  operatorAcceptPurchase: { ...ofOperators, wish: async (given) => ({ path: await addPurchase(given) }) },
  operatorDeclinePurchase: { ...ofOperators, wish: async (given) => ({ path: await addPurchase(given) }) },
  operatorCloseSession: { ...ofOperators, ...noSession },
  operatorPlanGroups: { ...ofReaders, ...planned, answers: 409, wish: () => ({ body: { rules: [] } }) },
  operatorApplyLab: sends(ofOperators, labOf),
  operatorPlanLab: { ...sends(ofReaders, labOf), ...planned },
  // A simulated cluster has no hosts to be asked.
  operatorSurveyCluster: {
    ...{ ...ofOperators, ...planned, answers: 409 },
    wish: () => ({ path: { clusterID: alpha }, body: {} }),
  },
  setSchedulerConfiguration: { ...ofConfigurers, wish: configuration },
  checkSchedulerConfiguration: { ...ofConfigurers, ...planned, wish: configuration },
  setDefaultSchedulerConfiguration: {
    ...sends(ofConfigurers, ({ next }) => ({ slurmExtraConfig: `# ${next()}` })),
    unknown: { orgId: 403 },
  },
};

type Read = Pick<Row, 'may' | 'refused' | 'answers'> & { query?(given: Given): string };

const members: readonly Name[] = ['ada', 'amy', 'max', 'dora', 'bob'];
const ofAll: Read = { may: people };
/** Of members, and of those on the staff who read. */
const ofMembersAndReaders: Read = { may: [...members, 'root', 'rita'], refused: absent(outsiders) };
/** Of members alone. */
const ofMembers: Read = { may: members, refused: absent([...outsiders, 'root']) };
/** Of who manages members. */
const ofManagersOnly: Read = { may: ['ada', 'amy', 'max'], refused: absent([...outsiders, 'root']) };
/** Of Bob: his own, and of who manages members or reads as staff. */
const aboutBob: Read = { may: ['ada', 'amy', 'max', 'bob', 'root', 'rita'], refused: absent(outsiders) };
/** Of holders of clusters.read. */
const ofClusterReaders: Read = { may: ['ada', 'amy', 'bob'] };
const ofAuditors: Read = { may: ['root', 'otto'] };

/** Every read of Business, with Bob and the cluster alpha in its path. */
export const reads: Record<string, Read> = {
  ...{ getMe: ofAll, listSshKeys: ofAll, planSshKeyChange: ofAll, listMySessions: ofAll },
  ...{ listMyPastSessions: ofAll, listMyRefusals: ofAll, listResourceGrants: ofAll, getMyAccess: ofAll },
  ...{ listMyKubernetesAccess: ofAll, listPermissionProfiles: ofAll, listMyAccessRequests: ofAll },
  listKeyClusters: ofBob,
  getResourceAccess: {
    may: ['ada', 'amy', 'bob', 'root', 'rita'],
    query: () => `?kind=kubernetes_cluster&id=${alpha}&gate=read`,
  },
  ...{ listMembers: ofMembersAndReaders, listTeams: ofMembersAndReaders, reviewAccess: ofMembersAndReaders },
  saveAccessReview: ofMembersAndReaders,
  listMemberAccess: {
    may: ['ada', 'amy', 'max', 'bob'],
    refused: absent([...outsiders, 'root']),
    query: ({ ids }) => `?user_ids=${ids.get('bob')}`,
  },
  ...{ listOrganizationGrants: ofManagersOnly, listAccessRequests: ofManagersOnly },
  listReservations: ofManagersOnly,
  ...{ getMemberPermissions: aboutBob, getMemberKubernetesAccess: aboutBob },
  listMemberPermissions: { ...aboutBob, may: ['ada', 'amy', 'max', 'root', 'rita'] },
  ...{ getCluster: ofClusterReaders, getClusterAccess: ofClusterReaders },
  ...{ getOrganization: ofMembers, listClusters: ofMembers },
  ...{ operatorListOrganizations: ofReaders, operatorListPeople: ofReaders, operatorListGrants: ofReaders },
  ...{ operatorListIdentities: ofReaders, operatorListClusters: ofReaders, operatorListMachines: ofReaders },
  ...{ operatorListPurchases: ofReaders, operatorListSessions: ofReaders, operatorGetGateway: ofReaders },
  ...{ operatorListProblems: ofReaders, operatorGetInstallation: ofReaders, operatorListServers: ofReaders },
  ...{ operatorExportLab: ofReaders, operatorListGroups: { ...ofReaders, answers: 409 } },
  ...{ operatorPlanDeactivation: ofOperators, operatorCheckCluster: { ...ofOperators, answers: 409 } },
  ...{ operatorListPastSessions: ofAuditors, operatorListAuditEntries: ofAuditors },
  ...{ operatorGetAuditHead: ofAuditors, operatorListAuditHeads: ofAuditors },
};

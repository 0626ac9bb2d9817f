/** Everything that pages read, each with the topics that make it be read again (src/console/server/topics.ts). */
import { queryOptions } from '@tanstack/react-query';
import { bodyOf, business, notePerson, own, platform } from './api.ts';
import type { Who } from './who.tsx';

function read<T>(key: readonly unknown[], topics: readonly string[], ask: () => Promise<T>) {
  return queryOptions({ queryKey: key, meta: { topics }, queryFn: ask });
}

export const readMe = () =>
  read(['me'], ['me'], async () => {
    const me = bodyOf(await business.GET('/me'));
    notePerson(me.user.id);
    return me;
  });

export const readKeys = () => read(['keys'], ['me'], async () => bodyOf(await business.GET('/me/ssh-keys')));

export const readOrganization = (orgID: string) =>
  read(['organization', orgID], [`organization/${orgID}`, 'me'], async () =>
    bodyOf(await business.GET('/organizations/{orgID}', { params: { path: { orgID } } })),
  );

/** Of the Platform API, every page of the list; empty for who may see none. */
export const readClusters = ({ orgID, seesClusters }: Who) =>
  read(['clusters', orgID, seesClusters], ['me', `organization/${orgID}`], async () => {
    const items: ClusterItem[] = [];
    if (!seesClusters) return items;
    let after: string | undefined;
    do {
      const query = { businessOrgId: orgID, limit: 200, ...(after !== undefined && { after }) };
      const answer = await platform.GET('/clusters', { params: { query } });
      if (answer.response.status === 403) return [];
      const page = bodyOf(answer);
      items.push(...page.items);
      after = page.nextPageToken;
    } while (after !== undefined);
    return items.sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  });

export type ClusterItem = Awaited<ReturnType<typeof readOneCluster>>;
async function readOneCluster(clusterId: string, businessOrgId: string) {
  const params = { path: { clusterId }, query: { businessOrgId } };
  return bodyOf(await platform.GET('/clusters/{clusterId}', { params }));
}

export const readCluster = (clusterId: string, orgID: string) =>
  read(['cluster', clusterId, orgID], [`cluster/${clusterId}`, 'me'], () => readOneCluster(clusterId, orgID));

/** Null where the person has no `clusters.ssh`. */
export const readSshAccess = (
  clusterId: string,
  { orgID: organizationId, permissions }: Who,
  keyFingerprint?: string,
) =>
  read(
    ['ssh-access', clusterId, organizationId, keyFingerprint, permissions.has('clusters.ssh')],
    [`cluster/${clusterId}`, 'me', `organization/${organizationId}`],
    async () => {
      if (!permissions.has('clusters.ssh')) return null;
      const query = { organizationId, ...(keyFingerprint !== undefined && { keyFingerprint }) };
      const params = { path: { clusterId }, query };
      const answer = await platform.GET('/clusters/{clusterId}/ssh-access', { params });
      return answer.response.status === 403 ? null : bodyOf(answer);
    },
  );

export type SshAccess = NonNullable<
  Awaited<ReturnType<NonNullable<ReturnType<typeof readSshAccess>['queryFn']>>>
>;

export const readOptions = (clusterId: string, businessOrgId: string) =>
  read(['options', clusterId, businessOrgId], [`cluster/${clusterId}`], async () => {
    const params = { path: { clusterId }, query: { businessOrgId } };
    return bodyOf(await platform.GET('/clusters/{clusterId}/options', { params }));
  });

/** Every page of the list. */
export const readMachines = (clusterId: string, businessOrgId: string) =>
  read(['machines', clusterId, businessOrgId], [`cluster/${clusterId}`], async () => {
    const items: Machine[] = [];
    let after: string | undefined;
    do {
      const page = await readMachinePage(clusterId, businessOrgId, after);
      items.push(...page.items);
      after = page.next_page_token;
    } while (after !== undefined);
    return items.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  });

export type Machine = Awaited<ReturnType<typeof readMachinePage>>['items'][number];
async function readMachinePage(clusterId: string, businessOrgId: string, after?: string) {
  const query = { businessOrgId, limit: 200, ...(after !== undefined && { after }) };
  return bodyOf(
    await platform.GET('/clusters/{clusterId}/machines', { params: { path: { clusterId }, query } }),
  );
}

/** What of a cluster's GPUs is in use. */
export const readUsage = (clusterId: string, businessOrgId: string) =>
  read(['usage', clusterId, businessOrgId], [`cluster/${clusterId}`], async () => {
    const params = { path: { clusterId }, query: { businessOrgId } };
    return bodyOf(await platform.GET('/clusters/{clusterId}/usage', { params }));
  });

export type Usage = Awaited<ReturnType<NonNullable<ReturnType<typeof readUsage>['queryFn']>>>;

/** Of an organization; null for who may not see reservations. Refresh with the cluster that they are shown with. */
export const readReservations = ({ orgID, permissions }: Who, clusterId: string) =>
  read(
    ['reservations', orgID, clusterId, permissions.has('reservations.read')],
    [`cluster/${clusterId}`, 'me'],
    async () => {
      if (!permissions.has('reservations.read')) return null;
      const answer = await business.GET('/organizations/{orgID}/reservations', {
        params: { path: { orgID } },
      });
      if (answer.response.status === 403 || answer.response.status === 404) return null;
      return bodyOf(answer).reservations;
    },
  );

export interface BrowserSession {
  id: string;
  current: boolean;
  address: string;
  program: string;
  signedInAt: string;
  usedAt: string;
}

export const readSessions = () =>
  read(['sessions'], ['me', 'sign-ins'], () => own<{ sessions: BrowserSession[] }>('GET', '/sessions'));

export const readMembers = (orgID: string) =>
  read(['members', orgID], [`members/${orgID}`, 'me'], async () =>
    bodyOf(await business.GET('/organizations/{orgID}/members', { params: { path: { orgID } } })),
  );

/** What the person was granted in an organization, and until when. */
export const readOwnPermissions = (orgID: string, userID: string) =>
  read(['own-permissions', orgID, userID], ['me', `members/${orgID}`], async () => {
    const params = { path: { orgID, userID } };
    return bodyOf(await business.GET('/organizations/{orgID}/members/{userID}/permissions', { params }));
  });

/** What the person asked for, in every organization. */
export const readOwnRequests = () =>
  read(['own-requests'], ['requests', 'me'], async () => bodyOf(await business.GET('/me/access-requests')));

/** What waits for a decision. */
export const readRequests = (orgID: string) => requestsOf(orgID, 'open');

/** With what was decided lately. */
export const readAllRequests = (orgID: string) => requestsOf(orgID, 'all');

const requestsOf = (orgID: string, state: 'open' | 'all') =>
  read(['requests', orgID, state], [`requests/${orgID}`, 'me'], async () => {
    const params = { path: { orgID }, query: { state } };
    return bodyOf(await business.GET('/organizations/{orgID}/access-requests', { params }));
  });

/** How far what one person may do has come on each cluster. */
export const readMemberAccess = (orgID: string, userID: string) =>
  read(['member-access', orgID, userID], [`members/${orgID}`, 'me', 'cluster/*'], async () => {
    const params = { path: { orgID }, query: { user_ids: userID } };
    return bodyOf(await business.GET('/organizations/{orgID}/access', { params }));
  });

/** Null for who may not grant. */
export const readMemberPermissions = ({ orgID, isDecider }: Who) =>
  read(['member-permissions', orgID, isDecider], [`members/${orgID}`, 'me'], async () => {
    if (!isDecider) return null;
    const answer = await business.GET('/organizations/{orgID}/permissions', { params: { path: { orgID } } });
    return answer.response.status === 403 ? null : bodyOf(answer);
  });

export const readCatalog = () =>
  read(['catalog'], [], async () => bodyOf(await business.GET('/permission-profiles')));

export const readOperatorClusters = () =>
  read(['operator', 'clusters'], ['installation'], async () =>
    bodyOf(await business.GET('/operator/clusters')),
  );

export const readMySshSessions = () =>
  read(['ssh-sessions'], ['me', 'my-ssh-sessions'], async () =>
    bodyOf(await business.GET('/me/ssh-sessions')),
  );

/** Which clusters have dropped a revoked key, and when. */
export const readKeyClusters = (keyID: string) =>
  read(['key-clusters', keyID], ['me', 'cluster/*'], async () =>
    bodyOf(await business.GET('/me/ssh-keys/{keyID}/clusters', { params: { path: { keyID } } })),
  );

export const readMyRefusals = () =>
  read(['ssh-refusals'], ['me'], async () => bodyOf(await business.GET('/me/ssh-refusals')));

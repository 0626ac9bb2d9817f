/** The signed-in person, and every read of the pages with the topics that invalidate it (src/console/server/events.ts). */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type { components as BusinessComponents } from '../../api/generated/business.ts';
import type { components } from '../../api/generated/platform.ts';
import { effectivePermissions } from '../../domain/access/permission.ts';
import { mostUsagesAtOnce } from '../../domain/clusters/gpu-usage.ts';
import { ApiError, bodyOf, bodyOrNull, business, notePerson, own, platform } from './api.ts';

export type ClusterItem = components['schemas']['Cluster'];
export type SshAccess = components['schemas']['SshAccess'];
export type Machine = components['schemas']['Machine'];
export type Usage = components['schemas']['ClusterUsage'];
export type Job = components['schemas']['Job'];
export type GpuHours = components['schemas']['GpuHours'];
export type PendingJob = components['schemas']['PendingJob'];

type Schemas = BusinessComponents['schemas'];
export type ClusterUse = Schemas['ClusterUse'];
export type Use = Schemas['Use'];
export type OperatorMachine = Schemas['OperatorMachine'];
export type Person = Schemas['Person'];
export type Problem = Schemas['Problem'];
export type Installation = Schemas['Installation'];

export function read<T>(key: readonly unknown[], topics: readonly string[], ask: () => Promise<T>) {
  return queryOptions({ queryKey: key, meta: { topics }, queryFn: ask });
}

export function of<Ids>(path: Ids) {
  return { params: { path } };
}

interface ListPage<Item> {
  items: Item[];
  next: string | undefined;
}

/** Reads all pages of a list, or at most `pages`. */
async function listAll<Item>(
  ask: (after: { after?: string }) => Promise<ListPage<Item>>,
  pages = Number.POSITIVE_INFINITY,
): Promise<ListPage<Item>> {
  const all: ListPage<Item> = { items: [], next: undefined };
  for (let page = 0; page < pages; page += 1) {
    const { items, next } = await ask(all.next === undefined ? {} : { after: all.next });
    all.items.push(...items);
    all.next = next;
    if (next === undefined) break;
  }
  return all;
}

export const readMe = () =>
  read(['me'], ['me'], async () => {
    const me = bodyOf(await business.GET('/me'));
    notePerson(me.user.id);
    return me;
  });

export const readKeys = () =>
  read(['keys'], ['me', 'my-ssh-sessions'], () => business.GET('/me/ssh-keys').then(bodyOf));

export const readOrganization = (orgID: string) =>
  read(['organization', orgID], [`organization/${orgID}`, 'me'], () =>
    business.GET('/organizations/{orgID}', of({ orgID })).then(bodyOf),
  );

/** Clusters from the Platform API; empty for a person who may see none. */
export const readClusters = ({ orgID, seesClusters }: Who) =>
  read(['clusters', orgID, seesClusters], ['me', `organization/${orgID}`], async () => {
    if (!seesClusters) return [];
    const { items } = await listAll<ClusterItem>(async (after) => {
      const query = { businessOrgId: orgID, limit: 200, ...after };
      const page = bodyOrNull(await platform.GET('/clusters', { params: { query } }), 403);
      return { items: page?.items ?? [], next: page?.nextPageToken };
    });
    return items.sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  });

/** The parameters of a request about a cluster of an organization, for openapi-fetch. */
export function inside(clusterId: string, businessOrgId: string) {
  return { params: { path: { clusterId }, query: { businessOrgId } } };
}

export const readCluster = (clusterId: string, orgID: string) =>
  read(['cluster', clusterId, orgID], [`cluster/${clusterId}`, 'me'], () =>
    platform.GET('/clusters/{clusterId}', inside(clusterId, orgID)).then(bodyOf),
  );

/** The cluster's name where a shell needs no quotes around it, else its ID. */
export function plainName({ cluster_id: id, cluster_name: name }: ClusterUse): string {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name) ? name : id;
}

export const readUses = ({ me: { memberships }, orgID }: Who) => ({
  ...read(
    ['uses', orgID],
    ['me', 'requests', 'cluster/*', `organization/${orgID}`, `members/${orgID}`],
    async () => {
      const { clusters } = bodyOf(await business.GET('/me/access'));
      const isElsewhere = (id: string) => id !== orgID && memberships.some(({ org_id: own }) => own === id);
      return clusters.filter(({ organization_id: id }) => !isElsewhere(id));
    },
  ),
  // A pending state turns into a failure after a while, which no topic announces: poll.
  refetchInterval: ({ state: { data = [] } }: { state: { data?: ClusterUse[] | undefined } }) =>
    data.some(({ ssh, kubernetes }) => ssh.state === 'pending' || kubernetes.state === 'pending') && 30_000,
});

/** For a person who holds `clusters.ssh`; null where they have lost it since. */
export const readSshAccess = ({ cluster_id: clusterId, organization_id: organizationId }: ClusterUse) =>
  read(
    ['ssh-access', clusterId],
    [`cluster/${clusterId}`, 'me', `organization/${organizationId}`],
    async () => {
      const params = { path: { clusterId }, query: { organizationId } };
      return bodyOrNull(await platform.GET('/clusters/{clusterId}/ssh-access', { params }), 403);
    },
  );

export const readKubeconfig = ({ cluster_id: clusterId, organization_id: organizationId }: ClusterUse) =>
  read(['kubeconfig', clusterId], ['me', `cluster/${clusterId}`], async () => {
    const params = { path: { clusterId }, query: { organizationId } };
    return bodyOf(await platform.GET('/clusters/{clusterId}/kubeconfig', { params })).kubeconfig;
  });

export const readOptions = (clusterId: string, orgID: string) =>
  read(['options', clusterId, orgID], [`cluster/${clusterId}`], () =>
    platform.GET('/clusters/{clusterId}/options', inside(clusterId, orgID)).then(bodyOf),
  );

export const readMachines = (clusterId: string, businessOrgId: string) =>
  read(['machines', clusterId, businessOrgId], [`cluster/${clusterId}`], async () => {
    const { items } = await listAll<Machine>(async (after) => {
      const params = { path: { clusterId }, query: { businessOrgId, limit: 200, ...after } };
      const page = bodyOf(await platform.GET('/clusters/{clusterId}/machines', { params }));
      return { items: page.items, next: page.next_page_token };
    });
    return items.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  });

export const readUsage = (clusterId: string, orgID: string) =>
  read(['usage', clusterId, orgID], [`cluster/${clusterId}`], () => usageOf(clusterId, orgID));

const asked = new Map<string, { ids: string[]; reading: Promise<Usage[]> }>();

/** The usage of one cluster. Calls in the same tick are batched into one request. */
async function usageOf(clusterId: string, businessOrgId: string): Promise<Usage> {
  let batch = asked.get(businessOrgId);
  if (!batch || batch.ids.length === mostUsagesAtOnce) {
    const ids: string[] = [];
    batch = { ids, reading: Promise.resolve().then(() => readUsages(ids, businessOrgId)) };
    asked.set(businessOrgId, batch);
  }
  batch.ids.push(clusterId);
  const found = (await batch.reading).find((one) => one.cluster_id === clusterId);
  if (!found) throw new ApiError(404, 'not_found', 'You do not see this cluster any more.');
  return found;
}

async function readUsages(ids: string[], businessOrgId: string): Promise<Usage[]> {
  asked.delete(businessOrgId);
  const query = { businessOrgId, cluster_ids: ids.join(',') };
  return bodyOf(await platform.GET('/usage', { params: { query } })).items;
}

export const readGpuHours = (businessOrgId: string, days: number) =>
  read(['gpu-hours', businessOrgId, days], ['me'], () =>
    platform.GET('/gpu-hours', { params: { query: { businessOrgId, days } } }).then(bodyOf),
  );

export const readStorage = (orgId: string) =>
  read(['storage', orgId], ['cluster/*', 'me'], () =>
    platform.GET('/organizations/{orgId}/storage', of({ orgId })).then(bodyOf),
  );

/** An organization's reservations; null for a person who may not see them. Invalidated with the cluster that shows them. */
export const readReservations = ({ orgID, permissions }: Who, clusterId: string) =>
  read(
    ['reservations', orgID, clusterId, permissions.has('reservations.read')],
    [`cluster/${clusterId}`, 'me'],
    async () => {
      if (!permissions.has('reservations.read')) return null;
      const answer = await business.GET('/organizations/{orgID}/reservations', of({ orgID }));
      return bodyOrNull(answer, 403, 404)?.reservations ?? null;
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

export const readOwnPermissions = (orgID: string, userID: string) =>
  read(['own-permissions', orgID, userID], ['me', `members/${orgID}`], () =>
    business.GET('/organizations/{orgID}/members/{userID}/permissions', of({ orgID, userID })).then(bodyOf),
  );

export const readOwnRequests = () =>
  read(['own-requests'], ['requests', 'me'], () => business.GET('/me/access-requests').then(bodyOf));

export const readRequests = (orgID: string, state: 'open' | 'all') =>
  read(['requests', orgID, state], [`requests/${orgID}`, 'me'], () => {
    const params = { path: { orgID }, query: { state } };
    return business.GET('/organizations/{orgID}/access-requests', { params }).then(bodyOf);
  });

/** The permissions of all members; null for a person who may not grant any. */
export const readMemberPermissions = ({ orgID, isDecider }: Who) =>
  read(['member-permissions', orgID, isDecider], [`members/${orgID}`, 'me'], async () => {
    if (!isDecider) return null;
    return bodyOrNull(await business.GET('/organizations/{orgID}/permissions', of({ orgID })), 403);
  });

export const readCatalog = () =>
  read(['catalog'], [], async () => {
    const { permissions } = bodyOf(await business.GET('/permission-profiles'));
    return permissions.filter(({ key }) => !key.startsWith('organization.'));
  });

export const readOperatorClusters = () =>
  read(['operator', 'clusters'], installationTopics, () => business.GET('/operator/clusters').then(bodyOf));

export const readMySshSessions = () =>
  read(['ssh-sessions'], ['me', 'my-ssh-sessions'], () => business.GET('/me/ssh-sessions').then(bodyOf));

export const readKeyClusters = (keyID: string) =>
  read(['key-clusters', keyID], ['me', 'cluster/*'], () =>
    business.GET('/me/ssh-keys/{keyID}/clusters', of({ keyID })).then(bodyOf),
  );

export const readMyRefusals = () =>
  read(['ssh-refusals'], ['me'], () => business.GET('/me/ssh-refusals').then(bodyOf));

export const installationTopics = ['installation'] as const;

export const readProblems = () =>
  read(['operator', 'problems'], installationTopics, () => business.GET('/operator/problems').then(bodyOf));

export const readInstallation = () =>
  read(['operator', 'installation'], installationTopics, () =>
    business.GET('/operator/installation').then(bodyOf),
  );

export const readOperatorMachines = (clusterID: string) =>
  read(['operator', 'machines', clusterID], installationTopics, () =>
    business.GET('/operator/clusters/{clusterID}/machines', of({ clusterID })).then(bodyOf),
  );

export const readPeople = (email: string, pages: number) =>
  read(['operator', 'people', email, pages], installationTopics, () =>
    listAll<Person>(async (after) => {
      const query = { limit: 200, ...(email !== '' && { email }), ...after };
      const page = bodyOf(await business.GET('/operator/people', { params: { query } }));
      return { items: page.people, next: page.next_page_token };
    }, pages),
  );

export const readIdentities = (userID: string) =>
  read(['operator', 'identities', userID], installationTopics, () =>
    business.GET('/operator/people/{userID}/identities', of({ userID })).then(bodyOf),
  );

export const readOpenSessions = () =>
  read(['operator', 'sessions'], ['ssh-sessions'], () => business.GET('/operator/sessions').then(bodyOf));

/** Names of the clusters that the person sees, by ID; operators see all. */
export function useClusterNames(): ReadonlyMap<string, string> {
  const who = useWho();
  const own = useQuery(readClusters(who));
  const all = useQuery({ ...readOperatorClusters(), enabled: holdsStaff(who, 'staff.read') });
  return new Map([
    ...(own.data ?? []).map(({ id, spec }) => [id, spec.name] as const),
    ...(all.data?.clusters ?? []).map(({ cluster, name }) => [cluster.id, name] as const),
  ]);
}

export type Me = BusinessComponents['schemas']['Me'];
type Membership = BusinessComponents['schemas']['Membership'];

export interface Who {
  me: Me;
  membership: Membership | undefined;
  orgID: string;
  permissions: ReadonlySet<string>;
  /** Whether they may see any cluster of the organization. */
  seesClusters: boolean;
  isManager: boolean;
  isDecider: boolean;
}

export const WhoContext = createContext<Who | undefined>(undefined);

export function useWho(): Who {
  const who = useContext(WhoContext);
  if (!who) throw new Error('outside of the frame');
  return who;
}

export function membershipIn({ memberships, default_org_id: usual }: Me, org: string | undefined) {
  return memberships.find(({ org_id: id }) => id === (org ?? usual)) ?? memberships[0];
}

/** `granted`: the permissions granted to a member; `reaches`: whether they hold a grant on a cluster. */
export function whoIs(
  me: Me,
  membership: Membership | undefined,
  granted: readonly string[],
  reaches: boolean,
): Who {
  const permissions = membership ? effectivePermissions(membership.role, granted) : new Set<string>();
  const who = {
    me,
    membership,
    orgID: membership?.org_id ?? '',
    permissions,
    isManager: membership !== undefined && membership.role !== 'member',
    isDecider: permissions.has('members.manage'),
  };
  const seesAll = permissions.has('clusters.read') || holdsStaff(who, 'staff.read');
  return { ...who, seesClusters: membership !== undefined && (seesAll || reaches) };
}

type StaffKey = Me['staff_keys'][number];

/** Whether the person holds the key, or `staff.operate`, which includes it. The APIs decide; this spares refused requests. */
export function holdsStaff({ me: { staff_keys: held } }: Pick<Who, 'me'>, key: StaffKey): boolean {
  return held.includes(key) || held.includes('staff.operate');
}

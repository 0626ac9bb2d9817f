/** The caller, their organizations, and the clusters of those. */
import { foldEmail, holdsStaffKey } from '../../domain/people/person.ts';
import { visibleLine } from '../../domain/text.ts';
import { pick } from '../arguments.ts';
import { CliError, failure, usage } from '../exit.ts';
import { type Business, type Platform, type PlatformReader, type Reader, readPages } from '../net/api.ts';
import { isObject } from '../net/request.ts';
import { printMessage } from '../output.ts';
import { optional } from '../verb.ts';

export interface Cluster {
  id: string;
  name: string;
  organization: Organization;
  platform?: Platform['Cluster'];
  business?: Business['Cluster'];
}

export interface Apis {
  api: Reader;
  platform: PlatformReader;
}

interface ListedClusters {
  clusters: Cluster[];
  hidden: Organization[];
}

export async function listClusters({ api, platform }: Apis, options: OrgOptions): Promise<ListedClusters> {
  const organizations = await findOrganizations(api, options);
  const found = await Promise.all(organizations.map((one) => clustersOf({ api, platform }, one)));
  const clusters = found.flatMap((one) => one ?? []);
  clusters.sort(
    (a, b) => a.organization.slug.localeCompare(b.organization.slug) || a.name.localeCompare(b.name),
  );
  return { clusters, hidden: organizations.filter((_, index) => found[index] === undefined) };
}

async function clustersOf(
  { api, platform }: Apis,
  organization: Organization,
): Promise<Cluster[] | undefined> {
  const { id: businessOrgId } = organization;
  const [onPlatform, inBusiness] = await Promise.all([
    unless(
      readPages(
        (after) => platform.get('/clusters', { query: { businessOrgId, limit: 200, after } }),
        ({ items, nextPageToken: next }) => ({ items, next }),
      ),
      'forbidden',
    ),
    unless(
      api.get('/organizations/{orgID}/clusters', { path: { orgID: businessOrgId } }),
      'forbidden',
      'notFound',
    ),
  ]);
  return onPlatform?.map((cluster) => {
    const business = inBusiness?.clusters.find(({ id }) => id === cluster.id);
    const { id, spec } = cluster;
    return { id, name: spec.name, organization, platform: cluster, ...(business && { business }) };
  });
}

/** Parameters that identify a cluster in most paths of the Platform API. */
export function named({ id, organization }: Pick<Cluster, 'id' | 'organization'>) {
  return { path: { clusterId: id }, query: { businessOrgId: organization.id } };
}

/**
 * Finds a cluster by its name, its ID or the beginning of the ID; if several had the name over time, the one in service. A
 * caller who may not list an organization's clusters must give the whole ID.
 */
export async function findCluster(apis: Apis, wanted: string, options: OrgOptions): Promise<Cluster> {
  const { clusters, hidden } = await listClusters(apis, options);
  const isKnown = clusters.some(({ id }) => id === wanted);
  const [only] = hidden;
  if (!isKnown && only !== undefined && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(wanted)) {
    if (hidden.length > 1) throw usage('Say with --org whose cluster this is.');
    return { id: wanted, name: wanted, organization: only };
  }
  const usable = isKnown ? [] : await usableIn(apis.api, hidden);
  if (clusters.length + usable.length === 0 && only !== undefined)
    throw new CliError(
      'forbidden',
      `You may not list the clusters of ${only.slug}, which takes clusters.read; name this one by its whole ID.`,
    );
  const all = [...clusters, ...usable];
  const inService = all.filter(isInService);
  const among = inService.some(({ name }) => name === wanted) ? inService : all;
  return pick(['cluster', 'clusters'], among, wanted, ({ name, id }) => [name, id]);
}

/** Clusters that the caller may use in organizations whose clusters they may not list. `way`: only those with this access. */
export async function usableIn(
  api: Reader,
  hidden: readonly Organization[],
  way?: 'ssh' | 'kubernetes',
): Promise<Cluster[]> {
  if (hidden.length === 0) return [];
  const { clusters } = await api.get('/me/access');
  const wanted = clusters.filter((one) => way === undefined || one[way].granted);
  return wanted.flatMap(({ cluster_id: id, cluster_name: name, organization_id: organizationId }) => {
    const organization = hidden.find((one) => one.id === organizationId);
    return organization ? { id, name, organization } : [];
  });
}

export function isInService({ platform }: Cluster): boolean {
  return platform?.status.lifecycleState !== 'released';
}

/** The result, or undefined when the API refuses with one of these outcomes. */
export async function unless<T>(
  what: Promise<T>,
  ...refusals: readonly CliError['outcome'][]
): Promise<T | undefined> {
  try {
    return await what;
  } catch (error) {
    if (error instanceof CliError && refusals.includes(error.outcome)) return undefined;
    throw error;
  }
}

export type Organization = Pick<Business['Organization'], 'id' | 'slug'>;

export interface OrgOptions {
  org?: string;
}

export const orgFlag = optional('--org <slug>', 'the organization, by slug or ID');

/** Reads the caller. Nearly every command starts with this, so it rejects the answer of a wrong server. */
export async function findMe(api: Reader): Promise<Business['Me']> {
  const me = await api.get('/me');
  const memberships: unknown = me.memberships;
  const isUnderstood =
    isObject(me.user) &&
    Array.isArray(memberships) &&
    memberships.every((one) => isObject(one) && typeof one.org_id === 'string');
  if (!isUnderstood)
    throw failure('The answer of the Business API to GET /me was not understood; is this its address?');
  // Prints each notice of the service once, for example of access that lapses.
  const notices: unknown[] = Array.isArray(me.notices) ? me.notices : [];
  const said = printed.get(api) ?? new Set();
  printed.set(api, said);
  for (const notice of notices.filter((one) => typeof one === 'string' && !said.has(one))) {
    said.add(notice);
    printMessage(`Note: ${visibleLine(String(notice))}`);
  }
  return me;
}

const printed = new WeakMap<Reader, Set<unknown>>();

/**
 * The caller's organizations, or only the one given by `org`, which for staff can be any. An `org_` ID may also be of another
 * organization that shares a cluster with the caller.
 */
export async function findOrganizations(api: Reader, { org }: OrgOptions): Promise<Organization[]> {
  const { memberships, staff_keys: staffKeys } = await findMe(api);
  if (org?.startsWith('org_') && !memberships.some(({ org_id: id }) => id === org))
    return [{ id: org, slug: org }];
  const all = await Promise.all(
    memberships.map(({ org_id: id }) => api.get('/organizations/{orgID}', { path: { orgID: id } })),
  );
  if (org !== undefined) {
    const labelsOf = ({ slug, id }: Organization) => [slug, id] as const;
    const isStaff = Array.isArray(staffKeys) && holdsStaffKey(staffKeys, 'staff.read');
    if (!isStaff || all.some((one) => labelsOf(one).includes(org)))
      return [pick(['organization of yours', 'organizations of yours'], all, org, labelsOf)];
    const { organizations } = await api.get('/operator/organizations');
    const any = organizations.map(({ organization }) => organization);
    return [pick(['organization', 'organizations'], any, org, labelsOf)];
  }
  if (all.length > 0) return all;
  throw new CliError(
    'notFound',
    'You belong to no organization; one that shares a cluster with you is named with --org and its ID.',
  );
}

export async function orgPath(api: Reader, options: OrgOptions): Promise<{ orgID: string }> {
  return { orgID: (await findOrganization(api, options)).id };
}

/** The organization given by `org`, or the caller's only one. */
export async function findOrganization(api: Reader, options: OrgOptions): Promise<Organization> {
  const all = await findOrganizations(api, options);
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  const slugs = all.map(({ slug }) => slug).sort();
  throw usage(`You belong to several organizations: ${slugs.join(', ')}. Choose one with --org.`);
}

export type Member = Business['Membership'];

export async function listMembers(api: Reader, { id }: Organization): Promise<Member[]> {
  return (await api.get('/organizations/{orgID}/members', { path: { orgID: id } })).members;
}

export async function findMember(api: Reader, organization: Organization, wanted: string): Promise<Member> {
  const kind = [`member of ${organization.slug}`, `members of ${organization.slug}`] as const;
  const name = wanted.includes('@') ? foldEmail(wanted) : wanted;
  return pick(kind, await listMembers(api, organization), name, ({ email, user_id: id }) => [email, id]);
}

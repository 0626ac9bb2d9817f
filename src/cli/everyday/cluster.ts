/** The clusters of the caller's organizations, and the one of them that is meant. */

import { CliError, usage } from '../exit.ts';
import type { PlatformReader, Reader } from '../net/api.ts';
import type { Business, Platform } from '../net/operations.ts';
import { readPages } from '../net/pages.ts';
import { type PickKind, pick } from '../pick.ts';
import { findOrganizations, type Organization, type OrgOptions } from './caller.ts';

/** A cluster as both APIs have it; `platform` is missing where only the ID is known. */
export interface Cluster {
  id: string;
  name: string;
  organization: Organization;
  platform?: Platform['Cluster'];
  business?: Business['Cluster'];
}

interface Apis {
  api: Reader;
  platform: PlatformReader;
}

interface Listed {
  clusters: Cluster[];
  /** Organizations whose clusters the caller may not list. */
  hidden: Organization[];
}

const kind: PickKind<Cluster> = {
  one: 'cluster',
  many: 'clusters',
  nameOf: ({ name }) => name,
  idOf: ({ id }) => id,
};

/** Every cluster that the caller sees, by organization, then by name. */
export async function listClusters({ api, platform }: Apis, options: OrgOptions): Promise<Listed> {
  const organizations = await findOrganizations(api, options);
  const found = await Promise.all(organizations.map((one) => clustersOf({ api, platform }, one)));
  const clusters = found.flatMap((one) => one ?? []);
  clusters.sort(
    (a, b) => a.organization.slug.localeCompare(b.organization.slug) || a.name.localeCompare(b.name),
  );
  return { clusters, hidden: organizations.filter((_, index) => found[index] === undefined) };
}

/** The clusters of one organization; undefined when the caller may not list them. */
async function clustersOf(
  { api, platform }: Apis,
  organization: Organization,
): Promise<Cluster[] | undefined> {
  const [onPlatform, inBusiness] = await Promise.all([
    unless(['forbidden'], listOnPlatform(platform, organization.id)),
    unless(['forbidden', 'notFound'], listInBusiness(api, organization.id)),
  ]);
  return onPlatform?.map((cluster) => {
    const business = inBusiness?.find(({ id }) => id === cluster.id);
    return {
      id: cluster.id,
      name: cluster.spec.name,
      organization,
      platform: cluster,
      ...(business && { business }),
    };
  });
}

function listOnPlatform(platform: PlatformReader, businessOrgId: string): Promise<Platform['Cluster'][]> {
  return readPages(
    (after) => platform.get('/clusters', { query: { businessOrgId, limit: 200, after } }),
    ({ items, nextPageToken: next }) => ({ items, next }),
  );
}

async function listInBusiness(api: Reader, organizationId: string): Promise<Business['Cluster'][]> {
  const path = { orgID: organizationId };
  return (await api.get('/organizations/{orgID}/clusters', { path })).clusters;
}

/**
 * The cluster with this name or ID, or an ID that begins so; of several that had the name over time, the one in
 * service. Who may not list an organization's clusters names one by its whole ID.
 */
export async function findCluster(apis: Apis, wanted: string, options: OrgOptions): Promise<Cluster> {
  const { clusters, hidden } = await listClusters(apis, options);
  const isKnown = clusters.some(({ id }) => id === wanted);
  const [only] = hidden;
  if (!isKnown && only !== undefined && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(wanted)) {
    if (hidden.length > 1) throw usage('Say with --org whose cluster this is.');
    return { id: wanted, name: wanted, organization: only };
  }
  if (clusters.length === 0 && only !== undefined)
    throw new CliError(
      'forbidden',
      `You may not list the clusters of ${only.slug}, which takes clusters.read; name this one by its whole ID.`,
    );
  const inService = clusters.filter(isInService);
  return pick(kind, inService.some(({ name }) => name === wanted) ? inService : clusters, wanted);
}

/** Whether it was not taken out of service. */
export function isInService({ platform }: Cluster): boolean {
  return platform?.status.lifecycleState !== 'released';
}

/** What comes, or undefined when the API refuses in one of these ways. */
export async function unless<T>(
  refusals: readonly CliError['outcome'][],
  what: Promise<T>,
): Promise<T | undefined> {
  try {
    return await what;
  } catch (error) {
    if (error instanceof CliError && refusals.includes(error.outcome)) return undefined;
    throw error;
  }
}

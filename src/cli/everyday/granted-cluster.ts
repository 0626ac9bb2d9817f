/** A cluster that the caller may use: one of their organizations', or one that somebody shares with them. */
import { CliError } from '../exit.ts';
import type { PlatformReader, Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { type PickKind, pick } from '../pick.ts';
import { findMe, type OrgOptions } from './caller.ts';
import { type Cluster, findCluster, unless } from './cluster.ts';

export interface UsableCluster {
  id: string;
  name: string;
  organizationId: string;
  /** Sentences on what keeps grants from being in force. */
  notices: string[];
}

type Grants = Business['GrantAccess'][];

const kind: PickKind<UsableCluster> = {
  one: 'cluster that is shared with you',
  many: 'clusters that are shared with you',
  nameOf: ({ name }) => name,
  idOf: ({ id }) => id,
};

/** The cluster by its name, its ID or the beginning of that. Grants are asked for only where no organization has it. */
export async function findUsableCluster(
  apis: { api: Reader; platform: PlatformReader },
  wanted: string,
  options: OrgOptions,
): Promise<UsableCluster> {
  const own = await findCluster(apis, wanted, options).catch((error: unknown) => {
    if (error instanceof CliError && ['notFound', 'forbidden'].includes(error.outcome)) return error;
    throw error;
  });
  if (!(own instanceof CliError) && own.platform) return ofOrganization(own);
  // A server of an earlier version has no such path.
  const answer = await unless(['notFound'], apis.api.get('/me/kubernetes-access'));
  const shared = clustersOf(answer?.grants ?? []);
  try {
    if (shared.length > 0) return pick(kind, shared, wanted);
  } catch (error) {
    const { memberships } = await findMe(apis.api);
    if (memberships.length === 0) throw error;
  }
  if (own instanceof CliError) throw own;
  return ofOrganization(own);
}

function ofOrganization({ id, name, organization }: Cluster): UsableCluster {
  return { id, name, organizationId: organization.id, notices: [] };
}

function clustersOf(grants: Grants): UsableCluster[] {
  const byCluster = Map.groupBy(grants, (grant) => grant.cluster_id);
  return [...byCluster].flatMap(([id, [first, ...more]]) => {
    if (!first) return [];
    const notices = [first, ...more]
      .filter(({ state }) => state !== 'applied')
      .map(({ state, message }) => `A grant of yours there is ${state}${message ? `: ${message}` : '.'}`);
    const { cluster_name: name, organization_id: organizationId } = first;
    return [{ id, name, organizationId, notices: [...new Set(notices)] }];
  });
}

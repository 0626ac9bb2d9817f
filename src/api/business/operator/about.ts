/** Whom and what operators ask about, as they name them. */
import type { Cluster } from '../../../domain/clusters/cluster.ts';
import { notFound } from '../../../domain/error.ts';
import { isUuid } from '../../../domain/id.ts';
import { findCluster, findClusterByName } from '../../../store/clusters/clusters.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { findPersonByEmail } from '../../../store/people/people.ts';

/** A person by email, a cluster by name, or either by an ID as it is: the trail outlives what it tells of. */
export async function subjectsOf(
  db: Reader,
  { person, cluster }: { person?: string | undefined; cluster?: string | undefined },
) {
  return {
    userId: person?.includes('@') ? await userIdOf(db, person) : person,
    clusterId:
      cluster !== undefined && isUuid(cluster) ? cluster.toLowerCase() : await clusterIdOf(db, cluster),
  };
}

async function userIdOf(db: Reader, email: string): Promise<string> {
  const user = await findPersonByEmail(db, email);
  if (!user) throw notFound(`There is no account for ${email}.`);
  return user.id;
}

async function clusterIdOf(db: Reader, name: string | undefined): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const found = await findClusterByName(db, name);
  if (!found) throw notFound(`There is no cluster ${name}.`);
  return found.id;
}

/** The cluster with this ID. Throws `not_found`. */
export async function requireCluster(db: Reader, clusterId: string): Promise<Cluster> {
  const cluster = await findCluster(db, clusterId);
  if (!cluster) throw notFound('There is no such cluster.');
  return cluster;
}

/** Whom and what operators ask about, as they name them. */
import type { Cluster } from '../../../domain/clusters/cluster.ts';
import { invalidState, notFound } from '../../../domain/error.ts';
import { isUuid } from '../../../domain/id.ts';
import type { Person } from '../../../domain/people/person.ts';
import { findCluster, findClusterByName } from '../../../store/clusters/clusters.ts';
import type { Reader, Tx } from '../../../store/engine/index.ts';
import { findPerson, findPersonByEmail } from '../../../store/people/people.ts';

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

/** The person with this ID. Throws `not_found`. */
export async function requirePerson(db: Reader, userId: string): Promise<Person> {
  const user = await findPerson(db, userId);
  if (user?.kind !== 'person') throw notFound('There is no such person.');
  return user;
}

/** Throws `invalid_state` for a person who was erased. */
export async function requireNotErased(tx: Tx, userId: string): Promise<void> {
  const { erasedAt } = await requirePerson(tx.db, userId);
  if (erasedAt !== null) throw invalidState('This person was erased, for good.');
}

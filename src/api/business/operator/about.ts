/** Whom and what operators ask about, as they name them. */
import { DomainError } from '../../../domain/error.ts';
import { isUuid } from '../../../domain/id.ts';
import { findClusterByName } from '../../../store/clusters/clusters.ts';
import type { Reader } from '../../../store/engine/index.ts';
import { findPersonByEmail } from '../../../store/people/people.ts';

/** A person by email, or an ID as it is: the trail outlives what it tells of. */
export async function personOf(db: Reader, person: string): Promise<string> {
  if (!person.includes('@')) return person;
  const user = await findPersonByEmail(db, person);
  if (!user) throw new DomainError('not_found', `There is no account for ${person}.`);
  return user.id;
}

/** A cluster by name, or an ID as it is. */
export async function clusterOf(db: Reader, cluster: string): Promise<string> {
  if (isUuid(cluster)) return cluster.toLowerCase();
  const found = await findClusterByName(db, cluster);
  if (!found) throw new DomainError('not_found', `There is no cluster ${cluster}.`);
  return found.id;
}

/** Whom and what operators ask about, as they name them. */
import type { Cluster } from '../../../domain/clusters/cluster.ts';
import { forbidden, invalidState, notFound } from '../../../domain/error.ts';
import { isUuid } from '../../../domain/id.ts';
import type { Caller, CommandReply } from '../../../domain/operation.ts';
import { holdsStaffKey, type Person, type StaffKey } from '../../../domain/people/person.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import { type LateAbout, runCommand } from '../../../store/audit/commands.ts';
import { findCluster, findClusterByName } from '../../../store/clusters/clusters.ts';
import type { Reader, Store, Tx } from '../../../store/engine/index.ts';
import { toTime } from '../../../store/engine/time.ts';
import { findPerson, findPersonByEmail, listStaffKeys } from '../../../store/people/people.ts';
import type { operations } from '../../generated/business.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest, Operation } from '../operation.ts';

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

export async function requireCluster(db: Reader, clusterId: string): Promise<Cluster> {
  const cluster = await findCluster(db, clusterId);
  if (!cluster) throw notFound('There is no such cluster.');
  return cluster;
}

export async function requirePerson(db: Reader, userId: string): Promise<Person> {
  const user = await findPerson(db, userId);
  if (user?.kind !== 'person') throw notFound('There is no such person.');
  return user;
}

export async function requireNotErased(tx: Tx, userId: string): Promise<void> {
  const { erasedAt } = await requirePerson(tx.db, userId);
  if (erasedAt !== null) throw invalidState('This person was erased, for good.');
}

/** Throws `forbidden` unless the person holds the staff key, by itself or included in another. */
async function requireStaff(db: Reader, userId: string, key: StaffKey): Promise<void> {
  if (holdsStaffKey(await listStaffKeys(db, userId), key)) return;
  throw forbidden(`This is for operators of the installation who hold ${key}.`);
}

/** Makes operations that are for people who hold a staff key: whether they do is asked before anything else. */
function forStaff(key: StaffKey) {
  return <Id extends keyof operations>(run: Operation<Id>): Operation<Id> =>
    async (deps, request) => {
      await requireStaff(deps.store.read, request.caller.userId, key);
      return run(deps, request);
    };
}
export const staffReads = forStaff('staff.read');
export const auditorReads = forStaff('staff.audit');
export const operatorAsks = forStaff('staff.operate');

/** What authorizes the commands of operators. Throws `forbidden`. */
export function requireOperator(tx: Tx, { userId }: Caller): Promise<void> {
  return requireStaff(tx.db, userId, 'staff.operate');
}

export function changePerson(
  deps: BusinessDeps,
  request: Pick<BusinessRequest<'operatorDeactivatePerson'>, 'path' | 'caller' | 'command' | 'now'>,
  { operation, meaning, details }: { operation: string; meaning: readonly string[]; details: string },
  change: (tx: Tx, userId: string) => Promise<LateAbout | undefined>,
): Promise<CommandReply<BusinessReply<'operatorCreatePerson'>>> {
  const userId = request.path.userID;
  const about = { target: userId, subjectUserId: userId, details };
  return runCommand(deps.store, request, {
    operation,
    meaning: [userId, ...meaning],
    about,
    authorize: requireOperator,
    async apply(tx) {
      await requirePerson(tx.db, userId);
      const known = await change(tx, userId);
      return { result: await personReply(tx, userId, deps.store), ...(known && { about: known }) };
    },
  });
}

export async function requireActive(tx: Tx, userId: string): Promise<Person> {
  const person = await requirePerson(tx.db, userId);
  if (person.lifecycleState !== 'active') throw invalidState('This account is deactivated.');
  return person;
}

export async function personReply(tx: Tx, userId: string, store: Store) {
  return personBody(await requirePerson(tx.db, userId), store);
}

export function personBody(person: Person, { lapses }: Store) {
  const { signInExemptUntil: exemptUntil } = person;
  const signIn = lapses.signInOf({ signedInAt: person.signedInAt ?? person.createdAt, exemptUntil });
  return {
    ...snakeCased(person, ['id', 'displayName', 'lifecycleState', 'staffKeys', 'createdAt', 'updatedAt']),
    primary_email: person.email,
    ...present({
      erased_at: person.erasedAt,
      last_sign_in_at: person.signedInAt,
      access_lapses_at: signIn && toTime(lapses.now() + signIn.leftMs),
      sign_in_exempt_until: exemptUntil,
    }),
  };
}

/** Helpers of operators' operations: permission checks, and looking up people and clusters by name. */
import type { Cluster } from '../../../domain/clusters/cluster.ts';
import { forbidden, invalidState, notFound } from '../../../domain/error.ts';
import { isUuid } from '../../../domain/id.ts';
import type { Caller } from '../../../domain/operation.ts';
import { holdsStaffKey, type Person, type StaffKey } from '../../../domain/people/person.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import type { LateAbout } from '../../../store/audit/commands.ts';
import { findCluster, findClusterByName } from '../../../store/clusters/clusters.ts';
import type { Reader, Store, Tx } from '../../../store/engine/index.ts';
import { toTime } from '../../../store/engine/time.ts';
import { findPerson, findPersonByEmail, listStaffKeys } from '../../../store/people/people.ts';
import type { operations } from '../../generated/business.ts';
import {
  type Awaitable,
  type BusinessDeps,
  type BusinessReply,
  type BusinessRequest,
  type CommandBody,
  type Operation,
  writes,
} from '../operation.ts';

/** Resolves a person by email and a cluster by name; IDs pass unchecked, since the trail outlives what it names. */
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

/** Throws `forbidden` unless the person holds the staff key, directly or included in another. */
async function requireStaff(db: Reader, userId: string, key: StaffKey): Promise<void> {
  if (holdsStaffKey(await listStaffKeys(db, userId), key)) return;
  throw forbidden(`This is for operators of the installation who hold ${key}.`);
}

/** Makes operations that require a staff key, which is checked before anything else. */
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

/** Authorizes the commands of operators. Throws `forbidden`. */
export function requireOperator(tx: Tx, { userId }: Caller): Promise<void> {
  return requireStaff(tx.db, userId, 'staff.operate');
}

export function operatorWrites<Id extends keyof operations>(
  operation: Id,
  bodyOf: (deps: BusinessDeps, request: BusinessRequest<Id>) => Awaitable<CommandBody<BusinessReply<Id>>>,
): Operation<Id> {
  return writes<Id>(operation, async (deps, request) => ({
    ...(await bodyOf(deps, request)),
    authorize: requireOperator,
  }));
}

interface PersonChange {
  meaning?: readonly string[];
  details: string;
  change(tx: Tx, userId: string): Promise<LateAbout | undefined>;
}

/** Makes an operation that changes a person and returns their new state. */
export function changesPerson<Id extends keyof operations>(
  operation: Id,
  changeOf: (deps: BusinessDeps, request: BusinessRequest<Id>) => Awaitable<PersonChange>,
): Operation<Id> {
  return operatorWrites<Id>(operation, async (deps, request) => {
    const { userID: userId } = request.path as { userID: string };
    const { meaning = [], details, change } = await changeOf(deps, request);
    return {
      meaning: [userId, ...meaning],
      about: { target: userId, subjectUserId: userId, details },
      async apply(tx) {
        await requirePerson(tx.db, userId);
        const about = await change(tx, userId);
        const result: unknown = await personReply(tx, userId, deps.store);
        return { result: result as BusinessReply<Id>, ...(about && { about }) };
      },
    };
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

/** A change of one person's account by an operator, and the person as operators see them. */
import { invalidState } from '../../../domain/error.ts';
import type { CommandReply } from '../../../domain/operation.ts';
import type { Person } from '../../../domain/people/person.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import { type LateAbout, runCommand } from '../../../store/audit/commands.ts';
import type { Store, Tx } from '../../../store/engine/index.ts';
import { toTime } from '../../../store/engine/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { requirePerson } from './about.ts';
import { requireOperator } from './staff.ts';

type PersonReply = Promise<CommandReply<BusinessReply<'operatorCreatePerson'>>>;

/** A change of one person's account, as an operator's command. */
export function changePerson(
  deps: BusinessDeps,
  request: Pick<BusinessRequest<'operatorDeactivatePerson'>, 'path' | 'caller' | 'command' | 'now'>,
  { operation, meaning, details }: { operation: string; meaning: readonly string[]; details: string },
  change: (tx: Tx, userId: string) => Promise<LateAbout | undefined>,
): PersonReply {
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

/** Throws `invalid_state` for an account that is deactivated. */
export async function requireActive(tx: Tx, userId: string): Promise<Person> {
  const person = await requirePerson(tx.db, userId);
  if (person.lifecycleState !== 'active') throw invalidState('This account is deactivated.');
  return person;
}

/** The person as they are in a transaction. */
export async function personReply(tx: Tx, userId: string, store: Store) {
  return personBody(await requirePerson(tx.db, userId), store);
}

/** A person as operators see them. */
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

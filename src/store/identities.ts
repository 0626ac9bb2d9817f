/** Which tokens are whose: the subjects at issuers that people sign in with. An account has at most one at an issuer. */
import { DomainError } from '../domain/error.ts';
import type { Person } from '../domain/person.ts';
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { toTime } from './time.ts';

/** A subject at an issuer; `createdAt` in RFC 3339. */
export interface Identity {
  issuer: string;
  subject: string;
  createdAt: string;
}

/** The person whom tokens of this issuer and subject are, and whether the account is active. */
export async function findIdentity(
  db: Reader,
  issuer: string,
  subject: string,
): Promise<{ userId: string; state: Person['lifecycleState'] } | undefined> {
  const [found] = await identityOf(db, issuer, subject);
  return found;
}

const identityOf = prepared((db, issuer: string, subject: string) =>
  db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .select(['user_id as userId', 'users.lifecycle_state as state'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject),
);

/** A person's identities, oldest first. */
export function listIdentities(db: Reader, userId: string): Promise<Identity[]> {
  return identitiesIn(db, 'identities', userId);
}

/** Identities that were taken from a person, oldest first; `createdAt` says when. */
export function listUnboundIdentities(db: Reader, userId: string): Promise<Identity[]> {
  return identitiesIn(db, 'unbound_identities', userId);
}

function identitiesIn(
  db: Reader,
  table: 'identities' | 'unbound_identities',
  userId: string,
): Promise<Identity[]> {
  return db
    .selectFrom(table)
    .select(['issuer', 'subject', 'created_at as createdAt'])
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .orderBy('issuer')
    .orderBy('subject')
    .execute();
}

/** Whether an operator took this sign-in from an account, so that it is not bound again by its address. */
export async function isUnbound(db: Reader, issuer: string, subject: string): Promise<boolean> {
  const row = await db
    .selectFrom('unbound_identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes an identity from a person, and keeps it from being bound again by its address. Throws `not_found`. */
export async function unbindIdentity(
  tx: Tx,
  { userId, issuer, subject }: { userId: string; issuer: string; subject: string },
): Promise<void> {
  const bound = await findIdentity(tx.db, issuer, subject);
  if (bound?.userId !== userId) throw new DomainError('not_found', 'The person has no such identity.');
  await tx.db.deleteFrom('identities').where('issuer', '=', issuer).where('subject', '=', subject).execute();
  const row = { issuer, subject, user_id: userId, created_at: toTime(tx.now) };
  await tx.db.insertInto('unbound_identities').values(row).execute();
  tx.changed({ userId });
}

/** Whether the person has an identity at this issuer. */
export async function hasIdentityAt(db: Reader, userId: string, issuer: string): Promise<boolean> {
  return (await listIdentities(db, userId)).some((identity) => identity.issuer === issuer);
}

/** Makes tokens of this issuer and subject the person's. The caller has seen that they are nobody's. */
export async function createIdentity(
  tx: Tx,
  identity: { issuer: string; subject: string; userId: string },
): Promise<void> {
  const { issuer, subject, userId } = identity;
  await tx.db
    .insertInto('identities')
    .values({ issuer, subject, user_id: userId, created_at: toTime(tx.now) })
    .execute();
}

/**
 * Takes a person's identity at an issuer away and, where `subject` is given, makes that one theirs instead. Returns the
 * subjects before. Throws `invalid_state` when the subject is another account's.
 */
export async function updateIdentityAt(
  tx: Tx,
  { userId, issuer, subject }: { userId: string; issuer: string; subject: string | undefined },
): Promise<string[]> {
  const before = (await listIdentities(tx.db, userId)).filter((identity) => identity.issuer === issuer);
  await tx.db.deleteFrom('identities').where('user_id', '=', userId).where('issuer', '=', issuer).execute();
  tx.changed({ userId });
  await tx.db
    .deleteFrom('unbound_identities')
    .where('issuer', '=', issuer)
    .where((eb) => eb.or([eb('user_id', '=', userId), eb('subject', '=', subject ?? '')]))
    .execute();
  if (subject !== undefined) {
    const other = await findIdentity(tx.db, issuer, subject);
    if (other) {
      throw new DomainError(
        'invalid_state',
        `${subject} is the identity of ${other.userId}. Rebind that one first.`,
      );
    }
    await createIdentity(tx, { issuer, subject, userId });
  }
  return before.map((identity) => identity.subject);
}

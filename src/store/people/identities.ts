/** The identities of people: subjects at issuers, at most one at each; and passwords of the embedded issuer. */
import { DomainError } from '../../domain/error.ts';
import { foldEmail, type Person } from '../../domain/people/person.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, findRow, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { deletePasswordLinks } from './second-factors.ts';

/** A subject at an issuer; `createdAt` in RFC 3339. */
export interface Identity {
  issuer: string;
  subject: string;
  createdAt: string;
}

/** The person to whom this issuer and subject belong, and whether the account is active. */
export async function findIdentity(
  db: Reader,
  issuer: string,
  subject: string,
): Promise<{ userId: string; state: Person['lifecycleState']; signedOutAt: string | null } | undefined> {
  const [found] = await identityOf(db, issuer, subject);
  return found;
}

const identityOf = prepared((db, issuer: string, subject: string) =>
  db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .select(['user_id as userId', 'users.lifecycle_state as state', 'users.signed_out_at as signedOutAt'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject),
);

/** A person's identities, oldest first. */
export function listIdentities(db: Reader, userId: string): Promise<Identity[]> {
  return identitiesIn(db, 'identities', userId);
}

/** Identities that were taken from a person, oldest first; `createdAt` says when. */
export async function listUnboundIdentities(db: Reader, userId: string): Promise<Identity[]> {
  return (await identitiesIn(db, 'unbound_identities', userId)).filter(({ issuer }) => issuer !== erased);
}

async function identitiesIn(
  db: Reader,
  table: 'identities' | 'unbound_identities',
  userId: string,
): Promise<Identity[]> {
  const rows = await listRows(db, table, { user_id: userId }, 'created_at', 'issuer', 'subject');
  return rows.map(({ issuer, subject, created_at: createdAt }) => ({ issuer, subject, createdAt }));
}

/** Replaces the issuer where the subject is the mark of an erased person's identity. */
const erased = 'erased';

/** Stores marks by which the identities of an erased person are recognized. */
export async function addErasedIdentities(tx: Tx, userId: string, marks: readonly string[]): Promise<void> {
  for (const subject of marks)
    await tx.db
      .insertInto('unbound_identities')
      .values({ issuer: erased, subject, user_id: userId, created_at: toTime(tx.now) })
      .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doNothing())
      .execute();
}

/** Whether the person who had the identity with this mark was erased. */
export function isErasedIdentity(db: Reader, mark: string): Promise<boolean> {
  return isUnbound(db, erased, mark);
}

/** Whether an operator took this sign-in from an account, so that it is not bound again by its address. */
export async function isUnbound(db: Reader, issuer: string, subject: string): Promise<boolean> {
  const row = await findRow(db, 'unbound_identities', { issuer, subject });
  return row !== undefined;
}

/** Takes an identity from a person, and keeps it from being bound again by its address. Throws `not_found`. */
export async function unbindIdentity(
  tx: Tx,
  { userId, issuer, subject }: { userId: string; issuer: string; subject: string },
): Promise<void> {
  const bound = await findIdentity(tx.db, issuer, subject);
  if (bound?.userId !== userId) throw new DomainError('not_found', 'The person has no such identity.');
  await deleteRows(tx.db, 'identities', { issuer, subject });
  const row = { issuer, subject, user_id: userId, created_at: toTime(tx.now) };
  await insertRow(tx.db, 'unbound_identities', row);
  await endAllSignIns(tx, userId);
}

export async function hasIdentityAt(db: Reader, userId: string, issuer: string): Promise<boolean> {
  return (await listIdentities(db, userId)).some((identity) => identity.issuer === issuer);
}

/** Binds this issuer and subject to the person. The caller has checked that no account has them. */
export async function createIdentity(
  tx: Tx,
  identity: { issuer: string; subject: string; userId: string },
): Promise<void> {
  const { issuer, subject, userId } = identity;
  await insertRow(tx.db, 'identities', { issuer, subject, user_id: userId, created_at: toTime(tx.now) });
}

/**
 * Removes a person's identity at an issuer and, where `subject` is given, binds that one instead. Returns the subjects
 * before. Throws `invalid_state` when the subject is another account's.
 */
export async function updateIdentityAt(
  tx: Tx,
  { userId, issuer, subject }: { userId: string; issuer: string; subject: string | undefined },
): Promise<string[]> {
  const before = (await listIdentities(tx.db, userId)).filter((identity) => identity.issuer === issuer);
  await deleteRows(tx.db, 'identities', { user_id: userId, issuer });
  tx.changed({ kind: 'person', userId });
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

/** A person's account at the embedded issuer. */
export interface PasswordAccount {
  userId: string;
  email: string;
  displayName: string;
  preferredUsername: string | null;
  passwordHash: string;
  /** How often the password was changed. Sign-ins with an earlier one are over. */
  passwordGeneration: number;
}

export async function setPassword(tx: Tx, password: { userId: string; hash: string }): Promise<void> {
  const row = { hash: password.hash, updated_at: toTime(tx.now) };
  await tx.db
    .insertInto('passwords')
    .values({ user_id: password.userId, generation: 0, ...row })
    .onConflict((conflict) =>
      conflict
        .column('user_id')
        .doUpdateSet((eb) => ({ ...row, generation: eb('passwords.generation', '+', 1) })),
    )
    .execute();
  tx.changed({ kind: 'person', userId: password.userId });
}

/** Ends all sign-ins of a person with their password, which stays. */
export async function endSignIns(tx: Tx, userId: string): Promise<void> {
  await tx.db
    .updateTable('passwords')
    .set((eb) => ({ generation: eb('generation', '+', 1) }))
    .where('user_id', '=', userId)
    .execute();
  tx.changed({ kind: 'person', userId });
}

/**
 * Ends all sign-ins of a person for good, at any issuer: tokens from before, sessions of browsers, a link to set a
 * password.
 */
export async function endAllSignIns(tx: Tx, userId: string): Promise<void> {
  await updateRows(tx.db, 'users', { id: userId }, { signed_out_at: toTime(tx.now) });
  await deleteRows(tx.db, 'console_sessions', { user_id: userId });
  await deletePasswordLinks(tx, userId);
  tx.changed({ kind: 'browsers', userId });
  await endSignIns(tx, userId);
}

/** The active person with this primary email, in any case, who has a password; undefined when there is none. */
export async function findPassword(reader: Reader, email: string): Promise<PasswordAccount | undefined> {
  const named = accounts(reader).where('users.primary_email', '=', foldEmail(email.trim()));
  return named.executeTakeFirst();
}

/** The active person with this ID who has a password; undefined when there is none. */
export async function findPasswordOfUser(
  reader: Reader,
  userId: string,
): Promise<PasswordAccount | undefined> {
  return accounts(reader).where('users.id', '=', userId).executeTakeFirst();
}

function accounts(reader: Reader) {
  return reader
    .selectFrom('users')
    .innerJoin('passwords', 'passwords.user_id', 'users.id')
    .select([
      'users.id as userId',
      'users.primary_email as email',
      'users.display_name as displayName',
      'users.preferred_username as preferredUsername',
      'passwords.hash as passwordHash',
      'passwords.generation as passwordGeneration',
    ])
    .where('users.kind', '=', 'person')
    .where('users.lifecycle_state', '=', 'active');
}

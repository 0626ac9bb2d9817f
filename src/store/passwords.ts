/** Passwords of the embedded issuer, and the people who can sign in with one: active, and persons. */
import { foldEmail } from '../domain/email.ts';
import type { Reader, Tx } from './index.ts';
import { toTime } from './time.ts';

/** A person as the embedded issuer speaks of them. */
export interface PasswordAccount {
  userId: string;
  email: string;
  displayName: string;
  preferredUsername: string | undefined;
  passwordHash: string;
  /** How often the password was changed. What was signed in to with an earlier one is over. */
  passwordGeneration: number;
}

/** Sets or replaces a person's password hash. */
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
  tx.changed({ userId: password.userId });
}

/** The active person with this primary email, in any case, who has a password; undefined when there is none. */
export async function findPassword(reader: Reader, email: string): Promise<PasswordAccount | undefined> {
  return account(
    await accounts(reader).where('users.primary_email', '=', foldEmail(email.trim())).executeTakeFirst(),
  );
}

/** The active person with this ID who has a password; undefined when there is none. */
export async function findPasswordOfUser(
  reader: Reader,
  userId: string,
): Promise<PasswordAccount | undefined> {
  return account(await accounts(reader).where('users.id', '=', userId).executeTakeFirst());
}

type Row = Awaited<ReturnType<ReturnType<typeof accounts>['executeTakeFirst']>>;

function accounts(reader: Reader) {
  return reader
    .selectFrom('users')
    .innerJoin('passwords', 'passwords.user_id', 'users.id')
    .select([
      'users.id',
      'users.primary_email',
      'users.display_name',
      'users.preferred_username',
      'passwords.hash',
      'passwords.generation',
    ])
    .where('users.kind', '=', 'person')
    .where('users.lifecycle_state', '=', 'active');
}

function account(row: Row): PasswordAccount | undefined {
  if (!row) return undefined;
  return {
    userId: row.id,
    email: row.primary_email,
    displayName: row.display_name,
    preferredUsername: row.preferred_username ?? undefined,
    passwordHash: row.hash,
    passwordGeneration: row.generation,
  };
}

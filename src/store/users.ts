/** People: their accounts, and which tokens are theirs. */

import type { Selectable } from 'kysely';
import { newId } from '../domain/id.ts';
import type { Reader, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import type { UserTable } from './schema.ts';
import { toTime } from './time.ts';

/** The installation itself, owner of what files make. Nobody can sign in as it. */
export const systemUserId = 'user_00000000000000000000000000';

export type User = Selectable<UserTable>;

/** A person with the operator permissions they hold, in order. */
export async function findUser(
  db: Reader,
  userId: string,
): Promise<(User & { staffKeys: string[] }) | undefined> {
  const rows = await usersById(db, userId);
  const [first] = rows;
  if (!first) return undefined;
  const { staff_permission: _, ...user } = first;
  return { ...user, staffKeys: rows.flatMap((row) => row.staff_permission ?? []) };
}

const usersById = prepared((db, userId: string) =>
  db
    .selectFrom('users')
    .leftJoin('staff_permissions', 'staff_permissions.user_id', 'users.id')
    .selectAll('users')
    .select('staff_permissions.permission as staff_permission')
    .where('users.id', '=', userId)
    .orderBy('staff_permissions.permission'),
);

/** The person whose primary email (any case) it is. */
export async function findUserByEmail(db: Reader, email: string): Promise<User | undefined> {
  return db
    .selectFrom('users')
    .selectAll()
    .where('primary_email', '=', email.toLowerCase())
    .where('kind', '=', 'person')
    .executeTakeFirst();
}

/** The ID of the person whom tokens of this issuer and subject are. */
export async function findIdentity(db: Reader, issuer: string, subject: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row?.user_id;
}

export async function createIdentity(
  tx: Tx,
  identity: { issuer: string; subject: string; userId: string },
  now: number,
): Promise<void> {
  const { issuer, subject, userId } = identity;
  await tx.db
    .insertInto('identities')
    .values({ issuer, subject, user_id: userId, created_at: toTime(now) })
    .execute();
}

/** A new account; returns its ID. Emails are kept in lower case. */
export async function createUser(
  tx: Tx,
  person: { email: string; displayName: string; preferredUsername?: string | undefined },
  now: number,
): Promise<string> {
  const id = newId('user', now);
  const at = toTime(now);
  await tx.db
    .insertInto('users')
    .values({
      id,
      kind: 'person',
      primary_email: person.email.toLowerCase(),
      display_name: person.displayName,
      preferred_username: person.preferredUsername ?? null,
      login_shell: '/bin/bash',
      lifecycle_state: 'active',
      created_at: at,
      updated_at: at,
    })
    .execute();
  return id;
}

/** The operator permissions a person holds, in order. */
export async function listStaffKeys(db: Reader, userId: string): Promise<string[]> {
  return (await staffKeysOf(db, userId)).map((row) => row.permission);
}

const staffKeysOf = prepared((db, userId: string) =>
  db.selectFrom('staff_permissions').select('permission').where('user_id', '=', userId).orderBy('permission'),
);

export async function createStaffKey(tx: Tx, userId: string, permission: string): Promise<void> {
  await tx.db
    .insertInto('staff_permissions')
    .values({ user_id: userId, permission })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Sets a person's login shell; changes nothing, and announces nothing, when it is that already. */
export async function updateLoginShell(tx: Tx, userId: string, shell: string, now: number): Promise<void> {
  const updated = await tx.db
    .updateTable('users')
    .set({ login_shell: shell, updated_at: toTime(now) })
    .where('id', '=', userId)
    .where('login_shell', '!=', shell)
    .executeTakeFirst();
  if (updated.numUpdatedRows > 0n) tx.changed({ userId });
}

/** People: their accounts, and when they last signed in. */
import type { Selectable } from 'kysely';
import { signInMs } from '../../domain/access/lapse.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { checkOperators, foldEmail, type Person, type StaffKey } from '../../domain/people/person.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { deleteRows, findRow, inCamelCase, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { endAllSignIns } from './identities.ts';

/** Two sign-ins of one minute are one: programs that start together sign in together. */
const noteEveryMs = 60_000;

/**
 * Records that a person signed in at this moment; lapsed access comes back. An account that was never signed in to counts from
 * its creation, and its first sign-in is always recorded.
 */
export async function recordSignIn(store: Store, userId: string, at: number): Promise<void> {
  const row = await findRow(store.read, 'users', { id: userId });
  if (row === undefined) return;
  const isFirst = row.last_sign_in_at === null;
  const before = fromTime(row.last_sign_in_at ?? row.created_at);
  if (!isFirst && at - before < noteEveryMs) return;
  const { lapses } = store;
  const ms = signInMs(lapses.policy, await findLeastSignInHours(store.read, userId));
  const hasLapsed = ms !== undefined && before + ms <= lapses.now();
  await store.write(
    async (tx) => {
      // A sign-in at the issuer from before the account was made counts from when it was made.
      await updateRows(tx.db, 'users', { id: userId }, { last_sign_in_at: toTime(Math.max(at, before)) });
      if (hasLapsed) tx.changed({ kind: 'person', userId });
    },
    { flush: false },
  );
}

/** Sets until when a person's access does not lapse without a sign-in; null: it does. */
export async function updateSignInExemption(
  tx: Tx,
  { userId, until }: { userId: string; until: string | null },
): Promise<void> {
  await updateRows(tx.db, 'users', { id: userId }, { sign_in_exempt_until: until });
  tx.changed({ kind: 'person', userId });
}

/** The fewest hours without a sign-in that an organization asks for: of all, or of a person's own. Null: none does. */
export async function findLeastSignInHours(db: Reader, userId?: string): Promise<number | null> {
  const least = db
    .selectFrom('organizations as o')
    .select((eb) => eb.fn.min('o.max_hours_without_sign_in').as('hours'))
    .where('o.lifecycle_state', '=', 'active');
  const own = db
    .selectFrom('memberships as m')
    .select('m.org_id')
    .where('m.user_id', '=', userId ?? '')
    .where('m.lifecycle_state', '=', 'active');
  const row = await (userId === undefined ? least : least.where('o.id', 'in', own)).executeTakeFirst();
  return row?.hours ?? null;
}

/** People whose last sign-in, or a key, is from between two times: their number, and the first by ID. */
interface PeopleCount {
  people: number;
  /** The first `mostNamed` of them. */
  userIds: string[];
}

const mostNamed = 20;

/** Active people whose last sign-in is between these times (RFC 3339). */
export async function findSignedInBetween(db: Reader, after: string, until: string): Promise<PeopleCount> {
  const rows = await db
    .selectFrom('users')
    .select('id')
    .where('kind', '=', 'person')
    .where('lifecycle_state', '=', 'active')
    .where((eb) => eb.fn.coalesce('last_sign_in_at', 'created_at'), '>', after)
    .where((eb) => eb.fn.coalesce('last_sign_in_at', 'created_at'), '<=', until)
    .orderBy('id')
    .execute();
  return concerned(rows.map(({ id }) => id));
}

/** Active people with an active key that was registered between these times (RFC 3339). */
export async function findRegisteredBetween(db: Reader, after: string, until: string): Promise<PeopleCount> {
  const rows = await db
    .selectFrom('ssh_keys as k')
    .innerJoin('users as u', 'u.id', 'k.user_id')
    .select('u.id')
    .distinct()
    .where('u.lifecycle_state', '=', 'active')
    .where('k.lifecycle_state', '=', 'active')
    .where('k.created_at', '>', after)
    .where('k.created_at', '<=', until)
    .orderBy('u.id')
    .execute();
  return concerned(rows.map(({ id }) => id));
}

function concerned(ids: readonly string[]): PeopleCount {
  return { people: ids.length, userIds: ids.slice(0, mostNamed) };
}

/** The installation itself, which owns what lab files make. It cannot sign in. */
export const systemUserId = 'user_00000000000000000000000000';
const systemEmail = 'installation@andromeda.invalid';

export async function findPerson(db: Reader, userId: string): Promise<Person | undefined> {
  return personOf(await rowsById(db, userId));
}

const rowsById = prepared((db, userId: string) => people(db).where('users.id', '=', userId));

/** The names of people and when they last signed in, by ID. It yields to the event loop between pages. */
export async function listNames(
  db: Reader,
  userIds: readonly string[],
): Promise<Map<string, { displayName: string; signedInAt: string | null }>> {
  const names = new Map<string, { displayName: string; signedInAt: string | null }>();
  for (let from = 0; from < userIds.length; from += namesAtOnce) {
    const rows = await db
      .selectFrom('users')
      .select(['id', 'display_name as displayName', 'last_sign_in_at as signedInAt'])
      .where('id', 'in', userIds.slice(from, from + namesAtOnce))
      .execute();
    for (const { id, ...row } of rows) names.set(id, row);
  }
  return names;
}

const namesAtOnce = 500;

/** The person whose primary email (any case) it is. */
export async function findPersonByEmail(db: Reader, email: string): Promise<Person | undefined> {
  return personOf(await rowsByEmail(db, foldEmail(email)));
}

const rowsByEmail = prepared((db, email: string) =>
  people(db).where('kind', '=', 'person').where('primary_email', '=', email),
);

/** A row for each of a person's operator permissions; one with null for a person without any. */
function people(db: Reader) {
  return db
    .selectFrom('users')
    .leftJoin('staff_permissions', 'staff_permissions.user_id', 'users.id')
    .selectAll('users')
    .select('staff_permissions.permission')
    .orderBy('staff_permissions.permission');
}

function personOf(
  rows: readonly (Selectable<Schema['users']> & { permission: StaffKey | null })[],
): Person | undefined {
  const [row] = rows;
  if (!row) return undefined;
  const { permission: _, primary_email: email, last_sign_in_at: signedInAt, ...user } = row;
  const staffKeys = rows.flatMap(({ permission }) => permission ?? []);
  return { ...inCamelCase(user), email, signedInAt, staffKeys };
}

/**
 * The person whose primary email (any case) it is, made an account where there is none. Throws `invalid_state` when
 * the account is deactivated, `invalid_request` for the installation's own address.
 */
export async function findOrCreatePerson(
  tx: Tx,
  person: { email: string; displayName?: string | undefined },
): Promise<{ userId: string; created: boolean }> {
  if (foldEmail(person.email) === systemEmail) {
    throw new DomainError('invalid_request', `${systemEmail} is the installation itself, which is nobody.`);
  }
  const known = await findPersonByEmail(tx.db, person.email);
  if (known && known.lifecycleState !== 'active') {
    throw new DomainError('invalid_state', `The account of ${known.email} is deactivated.`);
  }
  if (known) return { userId: known.id, created: false };
  const { email, displayName = email } = person;
  return { userId: await createPerson(tx, { email, displayName }), created: true };
}

/** Creates an account; returns its ID. Emails are stored in lower case. */
export async function createPerson(tx: Tx, person: { email: string; displayName: string }): Promise<string> {
  const id = newId('user', tx.now);
  const at = toTime(tx.now);
  await insertRow(tx.db, 'users', {
    id,
    kind: 'person',
    primary_email: foldEmail(person.email),
    display_name: person.displayName,
    login_shell: '/bin/bash',
    lifecycle_state: 'active',
    created_at: at,
    updated_at: at,
  });
  return id;
}

/** The operator permissions a person holds, in order. */
export async function listStaffKeys(db: Reader, userId: string): Promise<StaffKey[]> {
  const rows = await listRows(db, 'staff_permissions', { user_id: userId }, 'permission');
  return rows.map((row) => row.permission);
}

/** Replaces a person's operator permissions. Throws `invalid_state` when no person would be left who can operate the installation. */
export async function updateStaffKeys(
  tx: Tx,
  person: { userId: string; keys: readonly StaffKey[] },
): Promise<void> {
  const { userId } = person;
  const keys = [...new Set(person.keys)].sort();
  const before = await listStaffKeys(tx.db, userId);
  if (JSON.stringify(before) === JSON.stringify(keys)) return;
  await deleteRows(tx.db, 'staff_permissions', { user_id: userId });
  for (const permission of keys) {
    await insertRow(tx.db, 'staff_permissions', { user_id: userId, permission });
  }
  checkOperators({ before: before.includes('staff.operate'), after: await hasOperator(tx) });
  await touch(tx, userId, {});
}

async function hasOperator(tx: Tx): Promise<boolean> {
  const row = await tx.db
    .selectFrom('staff_permissions')
    .innerJoin('users', 'users.id', 'staff_permissions.user_id')
    .select('user_id')
    .where('permission', '=', 'staff.operate')
    .where('users.lifecycle_state', '=', 'active')
    .executeTakeFirst();
  return row !== undefined;
}

export async function updateDisplayName(
  tx: Tx,
  person: { userId: string; displayName: string },
): Promise<void> {
  const known = await findPerson(tx.db, person.userId);
  if (known?.displayName === person.displayName) return;
  await touch(tx, person.userId, { display_name: person.displayName });
}

/** Gives a person another primary email. Throws `invalid_state` where it is another account's, also one that was never signed in to. */
export async function updateEmail(tx: Tx, person: { userId: string; email: string }): Promise<void> {
  const email = foldEmail(person.email);
  const holder = await findPersonByEmail(tx.db, email);
  if (holder?.id === person.userId) return;
  if (holder || email === systemEmail) {
    throw new DomainError('invalid_state', `${email} is the address of another account.`);
  }
  await touch(tx, person.userId, { primary_email: email });
}

export async function updatePreferredUsername(tx: Tx, userId: string, name: string): Promise<void> {
  await touch(tx, userId, { preferred_username: name });
}

/** Activates or deactivates an account, which ends all its sign-ins for good. Throws `invalid_state` as `updateStaffKeys` does. */
export async function updateLifecycle(
  tx: Tx,
  person: { userId: string; state: Person['lifecycleState'] },
): Promise<void> {
  const known = await findPerson(tx.db, person.userId);
  if (known?.lifecycleState === person.state) return;
  if (person.state === 'deactivated') await endAllSignIns(tx, person.userId);
  const before = await hasOperator(tx);
  await touch(tx, person.userId, { lifecycle_state: person.state });
  checkOperators({ before, after: await hasOperator(tx) });
}

/** A page of people by ID, beginning behind `after`, with their operator permissions; only `email`, if given. */
export async function listPeople(
  db: Reader,
  page: { after?: string | undefined; limit: number; email?: string | undefined },
): Promise<Person[]> {
  let query = db.selectFrom('users').selectAll().where('kind', '=', 'person');
  if (page.after !== undefined) query = query.where('id', '>', page.after);
  if (page.email !== undefined) query = query.where('primary_email', '=', foldEmail(page.email));
  const rows = await query.orderBy('id').limit(page.limit).execute();
  const staff = await listRows(db, 'staff_permissions', {}, 'permission');
  const staffKeys = Map.groupBy(staff, (row) => row.user_id);
  return rows.flatMap((row) => {
    const held = staffKeys.get(row.id) ?? [{ permission: null }];
    return personOf(held.map(({ permission }) => ({ ...row, permission }))) ?? [];
  });
}

/** The addresses of accounts that are deactivated. */
export async function listDeactivatedEmails(db: Reader): Promise<Set<string>> {
  const rows = await listRows(db, 'users', { lifecycle_state: 'deactivated' });
  return new Set(rows.map((row) => row.primary_email));
}

async function touch(
  tx: Tx,
  userId: string,
  values: Partial<
    Pick<Schema['users'], 'display_name' | 'lifecycle_state' | 'preferred_username' | 'primary_email'>
  >,
): Promise<void> {
  await updateRows(tx.db, 'users', { id: userId }, { ...values, updated_at: toTime(tx.now) });
  tx.changed({ kind: 'person', userId });
}

/** Sets a person's login shell; changes nothing, and announces nothing, when it is that already. */
export async function updateLoginShell(tx: Tx, userId: string, shell: string): Promise<void> {
  const updated = await tx.db
    .updateTable('users')
    .set({ login_shell: shell, updated_at: toTime(tx.now) })
    .where('id', '=', userId)
    .where('login_shell', '!=', shell)
    .executeTakeFirst();
  if (updated.numUpdatedRows > 0n) tx.changed({ kind: 'person', userId });
}

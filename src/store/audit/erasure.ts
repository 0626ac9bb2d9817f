/**
 * Erasing a person: what names them goes out of their account at once, and out of stored results and the audit trail in
 * small parts. Their names are kept until the last of these, so that a crash does not leave some behind.
 */
import { DomainError } from '../../domain/error.ts';
import {
  erasedEmail,
  erasedName,
  erasedUsername,
  eraseFromJson,
  type PersonNames,
  personNames,
} from '../../domain/people/erasure.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { deleteRows, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { addErasedIdentities, listIdentities, listUnboundIdentities } from '../people/identities.ts';
import { findPerson } from '../people/people.ts';
import { findLastSeq } from './audit.ts';

const partSize = 50;
/** Operations whose details are `OLD → NEW` addresses. */
const emailOperations = ['operatorSetPersonEmail', 'followEmail'];

/**
 * Replaces what names a deactivated person, but for the audit trail. `mark`: what is kept of their identities, so that none of them
 * joins an organization by its domain again. Throws `invalid_state` for one who is active.
 */
export async function erasePerson(
  tx: Tx,
  userId: string,
  mark: (issuer: string, subject: string) => string,
): Promise<void> {
  const person = await findPerson(tx.db, userId);
  if (!person || person.erasedAt !== null) return;
  if (person.lifecycleState === 'active') {
    throw new DomainError(
      'invalid_state',
      `${person.email} is active. Deactivate the account first, and erase it when nobody needs to know any more whose it was.`,
    );
  }
  const at = toTime(tx.now);
  const names = await namesOf(tx.db, userId);
  // The entry of this command comes next, and may name them.
  const until = (await findLastSeq(tx.db)) + 1;
  await insertRow(tx.db, 'erasures', {
    user_id: userId,
    names: JSON.stringify(names),
    next_seq: 0,
    until_seq: until,
  });
  await updateRows(
    tx.db,
    'users',
    { id: userId },
    {
      primary_email: erasedEmail(userId),
      display_name: erasedName,
      preferred_username: null,
      login_shell: '/bin/bash',
      erased_at: at,
      updated_at: at,
    },
  );
  const identities = [
    ...(await listIdentities(tx.db, userId)),
    ...(await listUnboundIdentities(tx.db, userId)),
  ];
  for (const table of ['identities', 'unbound_identities', 'passwords'] as const) {
    await tx.db.deleteFrom(table).where('user_id', '=', userId).execute();
  }
  await addErasedIdentities(
    tx,
    userId,
    identities.map(({ issuer, subject }) => mark(issuer, subject)),
  );
  // Each has an address and the name of a browser.
  await deleteRows(tx.db, 'console_sessions', { user_id: userId });
  await tx.db.deleteFrom('issuer_records').where('payload', 'like', `%"accountId":"${userId}"%`).execute();
  // The fingerprint stays: a key is registered once.
  await tx.db
    .updateTable('ssh_keys')
    .set((eb) => ({ public_material: eb.ref('fingerprint') }))
    .where('user_id', '=', userId)
    .execute();
  await updateRows(
    tx.db,
    'organization_usernames',
    { user_id: userId, lifecycle_state: 'reserved' },
    { username: erasedUsername(userId) },
  );
  tx.changed({ kind: 'person', userId });
}

async function namesOf(db: Reader, userId: string): Promise<PersonNames> {
  const person = await findPerson(db, userId);
  const identities = await listIdentities(db, userId);
  const usernames = await listRows(db, 'organization_usernames', { user_id: userId });
  const changes = await db
    .selectFrom('audit_entries')
    .select('details')
    .where('subject_user_id', '=', userId)
    .where('operation', 'in', emailOperations)
    .execute();
  const emails = changes.flatMap(({ details }) => details.split(' → ')).filter((text) => text.includes('@'));
  return personNames(userId, {
    unique: [person?.email ?? '', ...emails, ...identities.map(({ subject }) => subject)],
    shown: [
      person?.displayName ?? null,
      person?.preferredUsername ?? null,
      ...usernames.map(({ username }) => username),
    ],
  });
}

/** A person whose names are being taken out, and how far that has come. */
export interface Erasure {
  names: PersonNames;
  nextSeq: number;
  untilSeq: number;
}

/** The first that is not done; undefined where all are. */
export async function findErasure(db: Reader): Promise<Erasure | undefined> {
  const row = await db.selectFrom('erasures').selectAll().orderBy('user_id').limit(1).executeTakeFirst();
  return (
    row && { names: JSON.parse(row.names) as PersonNames, nextSeq: row.next_seq, untilSeq: row.until_seq }
  );
}

/** Notes up to which entry of the trail it is done. */
export async function setErasurePosition(store: Store, userId: string, nextSeq: number): Promise<void> {
  await store.write(({ db }) => updateRows(db, 'erasures', { user_id: userId }, { next_seq: nextSeq }), {
    flush: false,
  });
}

/** Forgets the names: nothing has them any more. */
export async function endErasure(store: Store, userId: string): Promise<void> {
  await store.write(({ db }) => deleteRows(db, 'erasures', { user_id: userId }));
}

/**
 * Removes a person from a page of the stored results of commands. The person's own are deleted, since they cannot be repeated
 * any more. Returns the ID of the last command looked at; undefined at the end.
 */
export async function eraseCommands(
  store: Store,
  names: PersonNames,
  after: string,
): Promise<string | undefined> {
  const rows = await store.read
    .selectFrom('commands')
    .select(['id', 'actor_user_id', 'result'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(partSize)
    .execute();
  const own = rows.filter((row) => row.actor_user_id === names.userId).map(({ id }) => id);
  const changed = rows
    .filter((row) => row.actor_user_id !== names.userId)
    .map(({ id, result }) => ({ id, before: result, result: eraseFromJson(result, names) }))
    .filter(({ before, result }) => before !== result);
  if (own.length + changed.length > 0) {
    await store.write(async ({ db }) => {
      if (own.length > 0) await db.deleteFrom('commands').where('id', 'in', own).execute();
      for (const { id, result } of changed) {
        await updateRows(db, 'commands', { id }, { result });
      }
    });
  }
  return rows.at(-1)?.id;
}

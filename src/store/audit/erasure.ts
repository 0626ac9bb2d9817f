/**
 * Erases a person: their names leave the account at once, and stored results and the audit trail in small parts. The
 * names are kept until the last part is done, so that a crash leaves none of them behind.
 */
import { DomainError } from '../../domain/error.ts';
import {
  erasedEmail,
  erasedName,
  erasedUsername,
  eraseFromJson,
  eraseFromText,
  type PersonNames,
  personNames,
} from '../../domain/people/erasure.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { type AnyRow, deleteRows, insertRow, listRows, tablesOf, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { addErasedIdentities, listIdentities, listUnboundIdentities } from '../people/identities.ts';
import { findPerson } from '../people/people.ts';
import { findLastSeq } from './audit.ts';

const partSize = 50;

/**
 * Replaces the names in a deactivated person's account. `mark` makes what is kept of an identity, so that none joins
 * an organization by its domain again. Throws `invalid_state` for a person who is active.
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
  // The audit entry of this command comes next, and may name the person.
  const until = (await findLastSeq(tx.db)) + 1;
  await insertRow(tx.db, 'erasures', {
    user_id: userId,
    names: JSON.stringify(names),
    next_seq: 0,
    until_seq: until,
  });
  const erased = { primary_email: erasedEmail(userId), display_name: erasedName, erased_at: at };
  const change = { ...erased, preferred_username: null, login_shell: '/bin/bash', updated_at: at };
  await updateRows(tx.db, 'users', { id: userId }, change);
  await eraseIdentities(tx, userId, mark);
  // Each session has an address and the name of a browser.
  await deleteRows(tx.db, 'console_sessions', { user_id: userId });
  await tx.db.deleteFrom('issuer_records').where('payload', 'like', `%"accountId":"${userId}"%`).execute();
  // The fingerprint stays: a key is registered once.
  await tx.db
    .updateTable('ssh_keys')
    .set((eb) => ({
      public_material: eb.ref('fingerprint'),
      label: null,
      created_from: null,
      last_used_from: null,
    }))
    .where('user_id', '=', userId)
    .execute();
  await eraseUnusedNames(tx, userId);
  await deleteRows(tx.db, 'former_names', { user_id: userId });
  tx.changed({ kind: 'person', userId });
}

/** A login name that was used on a cluster stays, as its number does. */
async function eraseUnusedNames(tx: Tx, userId: string): Promise<void> {
  const unused = { user_id: userId, lifecycle_state: 'reserved' } as const;
  const username = erasedUsername(userId);
  const used = tx.db
    .selectFrom('organization_usernames')
    .select('org_id')
    .where('user_id', '=', userId)
    .where('lifecycle_state', '=', 'frozen');
  await tx.db
    .updateTable('holdings')
    .set({ what: username })
    .where('user_id', '=', userId)
    .where('kind', '=', 'username')
    .where('org_id', 'not in', used)
    .execute();
  await updateRows(tx.db, 'organization_usernames', unused, { username });
}

async function eraseIdentities(
  tx: Tx,
  userId: string,
  mark: (issuer: string, subject: string) => string,
): Promise<void> {
  const identities = [
    ...(await listIdentities(tx.db, userId)),
    ...(await listUnboundIdentities(tx.db, userId)),
  ];
  for (const table of ['identities', 'unbound_identities', 'passwords', 'person_groups'] as const) {
    await deleteRows(tx.db, table, { user_id: userId });
  }
  await addErasedIdentities(
    tx,
    userId,
    identities.map(({ issuer, subject }) => mark(issuer, subject)),
  );
}

async function namesOf(db: Reader, userId: string): Promise<PersonNames> {
  const person = await findPerson(db, userId);
  const identities = await listIdentities(db, userId);
  const usernames = await listRows(db, 'organization_usernames', { user_id: userId });
  const former = (await listRows(db, 'former_names', { user_id: userId })).map(({ name }) => name);
  // An address that belongs to another account now is erased only in texts about this person.
  const passed = await db.selectFrom('users').select('primary_email').where('primary_email', 'in', former);
  const theirs = (former.length === 0 ? [] : await passed.execute()).map((row) => row.primary_email);
  const isAddress = (name: string) => name.includes('@') && !theirs.includes(name);
  return personNames(userId, {
    unique: [person?.email ?? '', ...former.filter(isAddress), ...identities.map(({ subject }) => subject)],
    shown: [
      person?.displayName ?? null,
      person?.preferredUsername ?? null,
      ...usernames.map(({ username }) => username),
      ...former.filter((name) => !isAddress(name)),
    ],
  });
}

/** An erasure under way: the person's names, and how far it has come in the trail. */
export interface Erasure {
  names: PersonNames;
  nextSeq: number;
  untilSeq: number;
}

/** The first erasure that is not done; undefined where all are. */
export async function findErasure(db: Reader): Promise<Erasure | undefined> {
  const row = await db.selectFrom('erasures').selectAll().orderBy('user_id').limit(1).executeTakeFirst();
  return (
    row && { names: JSON.parse(row.names) as PersonNames, nextSeq: row.next_seq, untilSeq: row.until_seq }
  );
}

/** Sets the entry of the trail up to which an erasure is done. */
export async function setErasurePosition(store: Store, userId: string, nextSeq: number): Promise<void> {
  await store.write(({ db }) => updateRows(db, 'erasures', { user_id: userId }, { next_seq: nextSeq }), {
    flush: false,
  });
}

/** Called when no other row has the names any more. The erasure goes on until the database's log has none either. */
export async function dropErasureNames(store: Store, userId: string): Promise<void> {
  const names = JSON.stringify(personNames(userId, { unique: [], shown: [] }));
  await store.write(({ db }) => updateRows(db, 'erasures', { user_id: userId }, { names }));
}

export async function endErasure(store: Store, userId: string): Promise<void> {
  await store.write(({ db }) => deleteRows(db, 'erasures', { user_id: userId }));
}

/** Tables besides the audit trail with texts about people, in the order in which a person is erased from them. */
export const textTables = ['commands', 'ssh_sessions', 'access_requests'] as const;

/** A person's own rows go; others may name them in these columns. Texts that they wrote (`authors`) are emptied. */
const texts: Record<
  (typeof textTables)[number],
  { key: string; owner: string; plain: string[]; json: string[]; authors?: Record<string, string> }
> = {
  commands: { key: 'id', owner: 'actor_user_id', plain: [], json: ['result'] },
  ssh_sessions: { key: 'seq', owner: 'user_id', plain: ['end_reason'], json: ['commands', 'forwards'] },
  access_requests: {
    key: 'id',
    owner: 'user_id',
    plain: ['reason', 'decision_reason'],
    json: [],
    authors: { decision_reason: 'decided_by_user_id' },
  },
};

/** Erases a person from a part of a table's rows, from the first or behind `after`. Returns the key of the last row read; undefined at the end. */
export async function eraseTexts(
  store: Store,
  table: (typeof textTables)[number],
  names: PersonNames,
  after: string | number | null,
): Promise<string | number | undefined> {
  const { key, owner } = texts[table];
  const name: string = table;
  let query = tablesOf(store.read).selectFrom(name).selectAll();
  if (after !== null) query = query.where(key, '>', after);
  const rows = await query.orderBy(key).limit(partSize).execute();
  const own = rows.filter((row) => row[owner] === names.userId).map((row) => row[key] ?? null);
  const changes = rows
    .filter((row) => row[owner] !== names.userId)
    .map((row) => ({ row, change: changeOf(row, table, names) }))
    .filter(({ change }) => Object.keys(change).length > 0);
  if (own.length + changes.length > 0)
    await store.write(async ({ db }) => {
      if (own.length > 0) await tablesOf(db).deleteFrom(name).where(key, 'in', own).execute();
      for (const { row, change } of changes)
        await tablesOf(db)
          .updateTable(name)
          .set(change)
          .where(key, '=', row[key] ?? null)
          .execute();
    });
  return rows.at(-1)?.[key] ?? undefined;
}

/** The columns of a row that change when the person is erased, with their new texts. */
function changeOf(row: AnyRow, table: (typeof textTables)[number], names: PersonNames): AnyRow {
  const { plain, json, authors = {} } = texts[table];
  const change: AnyRow = {};
  for (const column of [...plain, ...json]) {
    const text = row[column];
    if (typeof text !== 'string') continue;
    const isTheirs = row[authors[column] ?? ''] === names.userId;
    const erase = json.includes(column) ? eraseFromJson : eraseFromText;
    const left = isTheirs ? '' : erase(text, names);
    if (left !== text) change[column] = left;
  }
  return change;
}

/**
 * The service's own secrets where several servers share the database: in a table, encrypted with a key that is not in
 * it. They are read from the database each time, never cached: another server may have changed one.
 */
import { DomainError } from '../../domain/error.ts';
import { type SecretsKey, type SecretsKeys, seal, unseal } from '../../lib/secrets-key.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { findRow, inCamelCase, listRows, saveRow } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

export interface Secrets {
  /** Undefined where there never was one. Throws `invalid_state` where it cannot be read, or was lost. */
  find(name: string): Promise<string | undefined>;
  /**
   * The stored secret, or else the result of `make`, one for all where several servers make it at once. `by`: the
   * store that writes it, such as the leader's.
   */
  findOrAdd(name: string, make: () => string | Promise<string>, by?: Store): Promise<string>;
  /** Replaces a secret with the result of `change`; `undefined` leaves it. Resolves to the secret afterwards. */
  change(
    name: string,
    change: (before: string | undefined) => string | undefined,
    by?: Store,
  ): Promise<string | undefined>;
}

/** The metadata of a secret. */
export interface SecretSummary {
  name: string;
  keyId: string;
  version: number;
  createdAt: string;
  updatedAt: string;
}

/**
 * Opens the secrets of a database. Throws `invalid_state` with a sentence where they cannot be read with these keys,
 * or were lost: no other system would know new ones in their place.
 */
export async function openSecrets(store: Store, given: SecretsKeys): Promise<Secrets> {
  let keys = given;

  function open(row: Schema['secrets']): string {
    if (!keys.keys.some(({ id }) => id === row.key_id)) keys = keys.reread();
    return openSecret(keys, row);
  }

  /** The key that the other secrets are encrypted with, so that only a rotation changes it. */
  async function keyInUse(db: Reader): Promise<SecretsKey> {
    const used = await listKeyIds(db);
    if (unknownIds(keys, used).length > 0) keys = keys.reread();
    requireKnown(keys, used);
    return keys.keys.find(({ id }) => id === used[0]) ?? keys.keys[0];
  }

  async function find(db: Reader, name: string): Promise<{ text: string; version: number } | undefined> {
    const known = await findRow(db, 'secrets', { name });
    // A counter outside the table, which a backup may lack, shows that there was one.
    if (!known && !(await findRow(db, 'counters', { name: counterOf(name) }))) return undefined;
    // Another server may have added it between the two queries.
    const row = known ?? (await findRow(db, 'secrets', { name }));
    if (row) return { text: open(row), version: row.version };
    throw goneSecret(name);
  }

  requireKnown(keys, await listKeyIds(store.read));
  return {
    find: async (name) => (await find(store.read, name))?.text,
    async findOrAdd(name, make, by = store) {
      const known = await find(store.read, name);
      if (known) return known.text;
      const made = await make();
      return by.write(async (tx) => {
        const other = await find(tx.db, name);
        if (other) return other.text;
        await putSecret(tx, await keyInUse(tx.db), name, { text: made, version: 1 });
        return made;
      });
    },
    change: (name, change, by = store) =>
      by.write(async (tx) => {
        const before = await find(tx.db, name);
        const text = change(before?.text);
        if (text === undefined || text === before?.text) return before?.text;
        await putSecret(tx, await keyInUse(tx.db), name, { text, version: (before?.version ?? 0) + 1 });
        return text;
      }),
  };
}

function goneSecret(name: string): DomainError {
  return new DomainError(
    'invalid_state',
    `The secret ${name} is gone from the database. Restore the table \`secrets\` from a backup; nothing was made anew.`,
  );
}

/** The refusal to go on without a key: a new one only where nothing is encrypted with another. */
export function missingSecretsKey(all: readonly Pick<SecretSummary, 'keyId'>[]): DomainError {
  const ids = [...new Set(all.map(({ keyId }) => keyId))];
  const inform = 'name it as secretsKeyFile in the configuration (or set ANDROMEDA_SECRETS_KEY)';
  return new DomainError(
    'invalid_state',
    ids.length > 0
      ? `The keys of the service are in the database, encrypted with the key ${ids.join(' and ')}, which the other servers have: bring that one, and ${inform}. A new one could not read them.`
      : `The database is shared, so the keys of the service are in it, encrypted with a key that is not: there is none yet. Make one with \`andromeda admin secrets new-key FILE\`, put the same file on every server, and ${inform}.`,
  );
}

export async function listGoneSecrets(db: Reader): Promise<string[]> {
  const counters = await db
    .selectFrom('counters')
    .select('name')
    .where('name', 'like', counterOf('%'))
    .orderBy('name')
    .execute();
  const there = new Set((await listSecrets(db)).map(({ name }) => counterOf(name)));
  return counters.filter(({ name }) => !there.has(name)).map(({ name }) => name.slice(counterOf('').length));
}

export async function listSecrets(db: Reader): Promise<SecretSummary[]> {
  const rows = await listRows(db, 'secrets', {}, 'name');
  return rows.map(({ ciphertext: _, ...row }) => inCamelCase(row));
}

/**
 * Encrypts with `to`, in the given transaction, every secret that is not yet. Resolves to the number of changed
 * secrets, and of all.
 */
export async function reencryptSecrets(
  tx: Tx,
  from: SecretsKeys,
  to: SecretsKeys,
): Promise<{ changed: number; all: number }> {
  const [key] = to.keys;
  const keys: SecretsKeys = { ...from, keys: [...from.keys, key] };
  requireKnown(keys, await listKeyIds(tx.db));
  const all = await listRows(tx.db, 'secrets', {}, 'name');
  const others = all.filter((row) => row.key_id !== key.id);
  for (const row of others)
    await putSecret(tx, key, row.name, { text: openSecret(keys, row), version: row.version + 1 });
  return { changed: others.length, all: all.length };
}

/** All secrets, by name. Throws `invalid_state` where one cannot be read. */
export async function readSecrets(db: Reader, keys: SecretsKeys): Promise<Map<string, string>> {
  requireKnown(keys, await listKeyIds(db));
  const rows = await listRows(db, 'secrets', {}, 'name');
  return new Map(rows.map((row) => [row.name, openSecret(keys, row)]));
}

async function listKeyIds(db: Reader): Promise<string[]> {
  const rows = await db.selectFrom('secrets').select('key_id').distinct().orderBy('key_id').execute();
  return rows.map((row) => row.key_id);
}

function unknownIds({ keys }: SecretsKeys, used: readonly string[]): string[] {
  return used.filter((one) => !keys.some(({ id }) => id === one));
}

/** Throws `invalid_state` where a secret is encrypted with another key. */
function requireKnown(keys: SecretsKeys, used: readonly string[]): void {
  const unknown = unknownIds(keys, used);
  if (unknown.length > 0) throw wrongKey(keys, unknown);
}

/** Throws `invalid_state` with a sentence where no key fits, or the ciphertext was changed. */
function openSecret(keys: SecretsKeys, { name, version, key_id: keyId, ciphertext }: Schema['secrets']) {
  const key = keys.keys.find(({ id }) => id === keyId);
  if (!key) throw wrongKey(keys, [keyId]);
  const text = unseal(ciphertext, key.key, purposeOf(name, version));
  if (typeof text === 'string') return text;
  throw new DomainError(
    'invalid_state',
    `The secret ${name} in the database was changed: what is there is not what was written. Restore the table \`secrets\` from a backup.`,
  );
}

/** Binds a ciphertext to its name and version: it decrypts neither as another secret nor as a later version. */
function purposeOf(name: string, version: number): string {
  return `secret ${version} ${name}`;
}

/** The refusal of secrets that are encrypted with other keys than those at hand. */
function wrongKey({ source, keys }: SecretsKeys, keyIds: readonly string[]): DomainError {
  const held = keys.map(({ id }) => id).join(' and ');
  return new DomainError(
    'invalid_state',
    `The secrets in the database are encrypted with the key ${keyIds.join(' and ')}, and ${source} holds ${held}. Bring the key that they were encrypted with: every server of one database has the same. Nothing was made anew.`,
  );
}

/** Encrypts a secret, and stores it under its name, replacing the one before. */
export async function putSecret(
  tx: Pick<Tx, 'db' | 'now'>,
  key: SecretsKey,
  name: string,
  { text, version }: { text: string; version: number },
): Promise<void> {
  const ciphertext = seal(text, key.key, purposeOf(name, version));
  const now = toTime(tx.now);
  await tx.db
    .insertInto('secrets')
    .values({ name, ciphertext, key_id: key.id, version, created_at: now, updated_at: now })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({ ciphertext, key_id: key.id, version, updated_at: now }),
    )
    .execute();
  await saveRow(tx.db, 'counters', ['name'], { name: counterOf(name), value: version });
}

function counterOf(name: string): string {
  return `secret ${name}`;
}

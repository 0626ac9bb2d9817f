/** SSH keys and the versions of each person's set of them. */
import { createHash } from 'node:crypto';
import { DomainError } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import type { SshKey, SshKeySet, SshPublicKey } from '../domain/ssh-key.ts';
import type { Reader, Tx } from './index.ts';
import { awaitDrops } from './key-drops.ts';
import { prepared } from './prepared.ts';
import type { SshKeySetTable, SshKeyTable } from './schema.ts';
import { toTime } from './time.ts';

/** A person's keys, oldest first, revoked ones included. */
export async function listSshKeys(db: Reader, userId: string): Promise<SshKey[]> {
  return (await keysOf(db, userId)).map(keyOf);
}

const keysOf = prepared((db, userId: string) =>
  db.selectFrom('ssh_keys').selectAll().where('user_id', '=', userId).orderBy('id'),
);

/** The fingerprints of a person's active keys, in order. */
export async function listActiveFingerprints(db: Reader, userId: string): Promise<string[]> {
  return (await activeKeysOf(db, userId)).map((key) => key.fingerprint);
}

/** The same, with when each was registered (RFC 3339). */
export function listActiveKeys(
  db: Reader,
  userId: string,
): Promise<{ fingerprint: string; createdAt: string }[]> {
  return activeKeysOf(db, userId);
}

const activeKeysOf = prepared((db, userId: string) =>
  db
    .selectFrom('ssh_keys')
    .select(['fingerprint', 'created_at as createdAt'])
    .where('user_id', '=', userId)
    .where('lifecycle_state', '=', 'active')
    .orderBy('fingerprint'),
);

/** A person's key set; undefined before their first key. */
export async function findSshKeySet(db: Reader, userId: string): Promise<SshKeySet | undefined> {
  const [row] = await keySetOf(db, userId);
  return row && keySetFrom(row);
}

const keySetOf = prepared((db, userId: string) =>
  db.selectFrom('ssh_key_sets').selectAll().where('user_id', '=', userId),
);

/** Registers a key. Throws `invalid_state` when anyone ever registered it, whether or not it is revoked. */
export async function createSshKey(
  tx: Tx,
  registration: { userId: string; key: SshPublicKey; commandId: string },
): Promise<{ key: SshKey; set: SshKeySet }> {
  const { userId, key, commandId } = registration;
  const [taken] = await keyByFingerprint(tx.db, key.fingerprint);
  if (taken) {
    throw new DomainError(
      'invalid_state',
      'This key is already registered, or was and is revoked. A key can be registered only once; make a new one.',
    );
  }
  const generation = ((await findSshKeySet(tx.db, userId))?.generation ?? 0) + 1;
  const row: SshKeyTable = {
    id: newId('ssh_key', tx.now),
    user_id: userId,
    key_type: key.type,
    public_material: key.material,
    fingerprint: key.fingerprint,
    lifecycle_state: 'active',
    revoked_at: null,
    created_at: toTime(tx.now),
    created_by_user_id: userId,
    created_command_id: commandId,
    source_revision: generation,
  };
  await insertKey(tx.db, row);
  return { key: keyOf(row), set: await advanceKeySet(tx, userId, generation) };
}

// Of an erased person's key nothing else is left.
const keyByFingerprint = prepared((db, fingerprint: string) =>
  db.selectFrom('ssh_keys').select('user_id').where('fingerprint', '=', fingerprint),
);

const insertKey = prepared((db, key: SshKeyTable) => db.insertInto('ssh_keys').values(key));

/** Revokes a person's own key; a revoked one stays as it is. Throws `not_found` when it is not theirs. */
export async function revokeSshKey(
  tx: Tx,
  revocation: { userId: string; keyId: string },
): Promise<{ key: SshKey; set: SshKeySet }> {
  const { userId, keyId } = revocation;
  const row = await tx.db
    .selectFrom('ssh_keys')
    .selectAll()
    .where('id', '=', keyId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  const set = await findSshKeySet(tx.db, userId);
  if (!row || !set) throw new DomainError('not_found', 'You have no SSH key with this ID.');
  if (row.lifecycle_state === 'revoked') return { key: keyOf(row), set };
  const revoked = { lifecycle_state: 'revoked' as const, revoked_at: toTime(tx.now) };
  await tx.db.updateTable('ssh_keys').set(revoked).where('id', '=', keyId).execute();
  await awaitDrops(tx, { userId, keyId, fingerprint: row.fingerprint });
  return { key: keyOf({ ...row, ...revoked }), set: await advanceKeySet(tx, userId, set.generation + 1) };
}

async function advanceKeySet(tx: Tx, userId: string, generation: number): Promise<SshKeySet> {
  const active = await listActiveFingerprints(tx.db, userId);
  const digest = createHash('sha256').update(active.map((fingerprint) => `${fingerprint}\n`).join(''));
  const row: SshKeySetTable = {
    user_id: userId,
    generation,
    source_hash: `sha256:${digest.digest('hex')}`,
    created_at: toTime(tx.now),
  };
  await saveKeySet(tx.db, row);
  tx.changed({ userId });
  return keySetFrom(row);
}

const saveKeySet = prepared((db, set: SshKeySetTable) =>
  db
    .insertInto('ssh_key_sets')
    .values(set)
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(set)),
);

function keyOf(row: SshKeyTable): SshKey {
  return {
    id: row.id,
    userId: row.user_id,
    // Nothing else is registered.
    type: 'ssh-ed25519',
    material: row.public_material,
    fingerprint: row.fingerprint,
    state: row.lifecycle_state,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
    createdByUserId: row.created_by_user_id,
    createdCommandId: row.created_command_id,
    sourceRevision: row.source_revision,
  };
}

function keySetFrom(row: SshKeySetTable): SshKeySet {
  const { user_id: userId, generation, source_hash: sourceHash, created_at: createdAt } = row;
  return { userId, generation, sourceHash, createdAt };
}

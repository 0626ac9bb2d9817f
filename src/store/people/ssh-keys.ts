/** SSH keys, the versions of each person's key set, and when each cluster dropped a revoked key: its first report without it. */
import { createHash } from 'node:crypto';
import type { SshKey, SshKeySet, SshPublicKey } from '../../domain/access/ssh-key.ts';
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, inCamelCase, insertRow, listRows, saveRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';

/** Records a pending drop for each cluster that has a key of the person, or is being given it. */
async function awaitDrops(
  tx: Tx,
  { userId, keyId, fingerprint }: { userId: string; keyId: string; fingerprint: string },
): Promise<void> {
  const rows = await tx.db
    .selectFrom('access_list_users as l')
    .innerJoin('organization_access_lists as o', 'o.org_id', 'l.org_id')
    .innerJoin('clusters as c', 'c.organization_id', 'l.org_id')
    .select(['c.id', 'o.version', 'l.until_version', 'l.key_fingerprints'])
    .where('l.user_id', '=', userId)
    .where('c.scheduler', '=', 'sunk')
    .where('c.state', '!=', 'released')
    .execute();
  // The first version that lacks the key; where the present one has it, that is the next.
  const without = new Map<string, number>();
  for (const { id, version, until_version: until, key_fingerprints: keys } of rows) {
    if (!(JSON.parse(keys) as string[]).includes(fingerprint)) continue;
    without.set(id, Math.max(without.get(id) ?? 0, until ?? version + 1));
  }
  for (const [clusterId, version] of without) {
    const drop = { cluster_id: clusterId, key_id: keyId, user_id: userId, version };
    await insertRow(tx.db, 'key_drops', drop);
  }
}

/** Notes which keys a cluster has dropped, by the report that was just stored; returns whether there were any. */
export async function noteDrops(tx: Tx, clusterId: string): Promise<boolean> {
  const waiting = await waitingOn(tx.db, clusterId);
  const gone = waiting.filter(
    ({ list_version: known, version, fingerprint, key_fingerprints: keys }) =>
      known >= version && !(JSON.parse(keys ?? '[]') as string[]).includes(fingerprint),
  );
  for (const { key_id: keyId } of gone) {
    await updateRows(
      tx.db,
      'key_drops',
      { cluster_id: clusterId, key_id: keyId },
      { dropped_at: toTime(tx.now) },
    );
  }
  return gone.length > 0;
}

/** Pending drops, with the keys that the cluster has of their person, by name or by its list version. */
const waitingOn = prepared((db, clusterId: string) =>
  db
    .selectFrom('key_drops as d')
    .innerJoin('ssh_keys as k', 'k.id', 'd.key_id')
    .innerJoin('clusters as c', 'c.id', 'd.cluster_id')
    .innerJoin('observations as o', (join) =>
      join.onRef('o.cluster_id', '=', 'd.cluster_id').on('o.side', '=', 'slurm'),
    )
    .leftJoin('observed_accounts as a', (join) =>
      join.onRef('a.cluster_id', '=', 'd.cluster_id').onRef('a.user_id', '=', 'd.user_id'),
    )
    .leftJoin('access_list_users as l', (join) =>
      join
        .onRef('l.org_id', '=', 'c.organization_id')
        .onRef('l.user_id', '=', 'd.user_id')
        .onRef('l.since_version', '<=', 'o.list_version')
        .on((on) =>
          on.or([on('l.until_version', 'is', null), on('l.until_version', '>', on.ref('o.list_version'))]),
        ),
    )
    .select([
      'd.key_id',
      'd.version',
      'k.fingerprint',
      'o.list_version',
      (eb) => eb.fn.coalesce('a.key_fingerprints', 'l.key_fingerprints').as('key_fingerprints'),
    ])
    .where('d.cluster_id', '=', clusterId)
    .where('d.dropped_at', 'is', null),
);

/** Notes that a cluster has no account of ours any more. */
export async function noteAllDropped(tx: Tx, clusterId: string): Promise<void> {
  const waiting = { cluster_id: clusterId, dropped_at: null };
  await updateRows(tx.db, 'key_drops', waiting, { dropped_at: toTime(tx.now) });
}

/** The clusters that had a revoked key of the person, and when each dropped it (RFC 3339); null: not known to have. */
export async function listDrops(
  db: Reader,
  userId: string,
  keyId: string,
): Promise<{ clusterId: string; clusterName: string; droppedAt: string | null }[]> {
  return db
    .selectFrom('key_drops as d')
    .innerJoin('clusters as c', 'c.id', 'd.cluster_id')
    .select(['c.id as clusterId', 'c.name as clusterName', 'd.dropped_at as droppedAt'])
    .where('d.user_id', '=', userId)
    .where('d.key_id', '=', keyId)
    .orderBy('c.name')
    .orderBy('c.id')
    .execute();
}

/** A person's keys, oldest first, revoked ones included. */
export async function listSshKeys(db: Reader, userId: string): Promise<SshKey[]> {
  return (await listRows(db, 'ssh_keys', { user_id: userId }, 'id')).map(keyOf);
}

/** The fingerprints of a person's active keys, in order. */
async function listActiveFingerprints(db: Reader, userId: string): Promise<string[]> {
  return (await listActiveKeys(db, userId)).map((key) => key.fingerprint);
}

/** The active keys of a person, with when each was registered (RFC 3339). */
export async function listActiveKeys(
  db: Reader,
  userId: string,
): Promise<{ fingerprint: string; createdAt: string }[]> {
  const active = { user_id: userId, lifecycle_state: 'active' } as const;
  const rows = await listRows(db, 'ssh_keys', active, 'fingerprint');
  return rows.map(({ fingerprint, created_at: createdAt }) => ({ fingerprint, createdAt }));
}

/** A person's key set; undefined before their first key. */
export async function findSshKeySet(db: Reader, userId: string): Promise<SshKeySet | undefined> {
  const row = await findRow(db, 'ssh_key_sets', { user_id: userId });
  return row && inCamelCase(row);
}

/** The state before a key is registered: the same key if it ever was, and the person's set and active keys. */
export async function findBeforeKey(db: Reader, { userId, key }: { userId: string; key: SshPublicKey }) {
  const [taken, set, active] = await Promise.all([
    // An erased person's key has nothing else left.
    findRow(db, 'ssh_keys', { fingerprint: key.fingerprint }),
    findSshKeySet(db, userId),
    listActiveFingerprints(db, userId),
  ]);
  return { taken, set, active };
}

/** Registers a key. Throws `invalid_state` when it was ever registered, revoked or not. */
export async function createSshKey(
  tx: Tx,
  registration: {
    userId: string;
    key: SshPublicKey & { label?: string | null };
    commandId: string;
    /** The address that registers it. */
    from?: string;
    /** Who registers it; absent: the person. */
    createdBy?: string;
    before?: Awaited<ReturnType<typeof findBeforeKey>>;
  },
): Promise<{ key: SshKey; set: SshKeySet }> {
  const { userId, key, commandId } = registration;
  const { taken, set, active } = registration.before ?? (await findBeforeKey(tx.db, registration));
  if (taken) {
    throw new DomainError(
      'invalid_state',
      'This key is already registered, or was and is revoked. A key can be registered only once; make a new one.',
    );
  }
  const generation = (set?.generation ?? 0) + 1;
  const row: Schema['ssh_keys'] = {
    id: newId('ssh_key', tx.now),
    user_id: userId,
    key_type: key.type,
    public_material: key.material,
    fingerprint: key.fingerprint,
    lifecycle_state: 'active',
    revoked_at: null,
    created_at: toTime(tx.now),
    created_by_user_id: registration.createdBy ?? userId,
    created_command_id: commandId,
    source_revision: generation,
    label: key.label ?? null,
    created_from: registration.from || null,
    last_used_at: null,
    last_used_from: null,
  };
  await insertRow(tx.db, 'ssh_keys', row);
  const all = [...active, key.fingerprint].sort();
  return { key: keyOf(row), set: await advanceKeySet(tx, { userId, generation, active: all }) };
}

/** Names a person's own key. Throws `not_found` when it is not theirs. */
export async function updateKeyLabel(
  tx: Tx,
  { userId, keyId, label }: { userId: string; keyId: string; label: string | null },
): Promise<SshKey> {
  const row = await findRow(tx.db, 'ssh_keys', { id: keyId, user_id: userId });
  if (!row) throw keyNotFound();
  await updateRows(tx.db, 'ssh_keys', { id: keyId }, { label });
  tx.changed({ kind: 'person', userId });
  return keyOf({ ...row, label });
}

export async function noteKeyUses(
  { db }: Pick<Tx, 'db'>,
  uses: ReadonlyMap<string, { at: string; from: string }>,
): Promise<void> {
  await Promise.all(
    [...uses].map(([id, { at, from }]) =>
      db
        .updateTable('ssh_keys')
        .set({ last_used_at: at, last_used_from: from })
        .where('id', '=', id)
        .where((is) => is.or([is('last_used_at', 'is', null), is('last_used_at', '<', at)]))
        .execute(),
    ),
  );
}

/** The last SSH login of each member of an organization, with any of their keys; RFC 3339, by their IDs. */
export async function listLastLogins(db: Reader, organizationId: string): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('ssh_keys as k')
    .innerJoin('memberships as m', 'm.user_id', 'k.user_id')
    .select((eb) => ['k.user_id', eb.fn.max('k.last_used_at').as('at')])
    .where('m.org_id', '=', organizationId)
    .where('m.lifecycle_state', '=', 'active')
    .where('k.last_used_at', 'is not', null)
    .groupBy('k.user_id')
    .execute();
  return new Map(rows.map(({ user_id: userId, at }) => [userId, at ?? '']));
}

/** Revokes a person's own key; a revoked one stays as it is. Throws `not_found` when it is not theirs. */
export async function revokeSshKey(
  tx: Tx,
  revocation: { userId: string; keyId: string },
): Promise<{ key: SshKey; set: SshKeySet; isNew: boolean }> {
  const { userId, keyId } = revocation;
  const [row, set, active] = await Promise.all([
    findRow(tx.db, 'ssh_keys', { id: keyId, user_id: userId }),
    findSshKeySet(tx.db, userId),
    listActiveFingerprints(tx.db, userId),
  ]);
  if (!row || !set) throw keyNotFound();
  if (row.lifecycle_state === 'revoked') return { key: keyOf(row), set, isNew: false };
  const revoked = { lifecycle_state: 'revoked' as const, revoked_at: toTime(tx.now) };
  await updateRows(tx.db, 'ssh_keys', { id: keyId }, revoked);
  await awaitDrops(tx, { userId, keyId, fingerprint: row.fingerprint });
  const left = active.filter((fingerprint) => fingerprint !== row.fingerprint);
  const next = { userId, generation: set.generation + 1, active: left };
  return { key: keyOf({ ...row, ...revoked }), set: await advanceKeySet(tx, next), isNew: true };
}

function keyNotFound(): DomainError {
  return new DomainError('not_found', 'You have no SSH key with this ID.');
}

/** `active`: the fingerprints of the active keys, in order. */
async function advanceKeySet(
  tx: Tx,
  { userId, generation, active }: { userId: string; generation: number; active: readonly string[] },
): Promise<SshKeySet> {
  const digest = createHash('sha256').update(active.map((fingerprint) => `${fingerprint}\n`).join(''));
  const row: Schema['ssh_key_sets'] = {
    user_id: userId,
    generation,
    source_hash: `sha256:${digest.digest('hex')}`,
    created_at: toTime(tx.now),
  };
  await saveRow(tx.db, 'ssh_key_sets', ['user_id'], row);
  tx.changed({ kind: 'person', userId });
  return inCamelCase(row);
}

function keyOf({
  public_material: material,
  lifecycle_state: state,
  key_type: type,
  ...row
}: Schema['ssh_keys']): SshKey {
  return { ...inCamelCase(row), type, material, state };
}

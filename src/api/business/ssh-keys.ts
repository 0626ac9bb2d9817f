/** The caller's own SSH keys. */
import { lapseOf } from '../../domain/access/lapse.ts';
import { parseSshPublicKey, type SshKey, type SshKeySet } from '../../domain/access/ssh-key.ts';
import { DomainError } from '../../domain/error.ts';
import { isId } from '../../domain/id.ts';
import { runCommand } from '../../store/audit/commands.ts';
import * as keys from '../../store/people/ssh-keys.ts';
import { listDrops } from '../../store/people/ssh-keys.ts';
import type { Operation } from './operation.ts';

/** The caller's keys, revoked ones included, and the generation of the set. */
export const listSshKeys: Operation<'listSshKeys'> = async ({ store }, { caller }) => {
  const [list, set] = await Promise.all([
    keys.listSshKeys(store.read, caller.userId),
    keys.findSshKeySet(store.read, caller.userId),
  ]);
  const days = store.lapses.policy.keyMaxDays;
  return { keys: list.map((key) => keyBody(key, days)), generation: set?.generation ?? 0 };
};

/** Which clusters have dropped a revoked key of the caller, and when. */
export const listKeyClusters: Operation<'listKeyClusters'> = async ({ store }, { caller, path }) => {
  const own = await keys.listSshKeys(store.read, caller.userId);
  if (!own.some(({ id }) => id === path.keyID)) {
    throw new DomainError('not_found', 'You have no SSH key with this ID.');
  }
  const drops = await listDrops(store.read, caller.userId, path.keyID);
  return {
    clusters: drops.map(({ clusterId, clusterName, droppedAt }) => ({
      cluster_id: clusterId,
      cluster_name: clusterName,
      dropped_at: droppedAt,
    })),
  };
};

/** Registers a key for the caller. `invalid_state` when anyone registered it before. */
export const registerSshKey: Operation<'registerSshKey'> = async (
  { store },
  { caller, body, command, now },
) => {
  const key = parseSshPublicKey(body.public_key);
  const userId = caller.userId;
  const days = store.lapses.policy.keyMaxDays;
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'registerSshKey',
      meaning: [key.material],
      about: { target: 'ssh_key', subjectUserId: userId, details: key.fingerprint },
      read: (tx) => keys.findBeforeKey(tx.db, { userId, key }),
      async apply(tx, commandId, before) {
        const made = await keys.createSshKey(tx, { userId, key, commandId, before });
        return { result: keyReply(made, commandId, days), about: { target: made.key.id } };
      },
    },
  );
};

/** Revokes one of the caller's keys. Revoking a revoked one answers with it and changes nothing. */
export const revokeSshKey: Operation<'revokeSshKey'> = async ({ store }, { caller, path, command, now }) => {
  const keyId = path.keyID;
  const days = store.lapses.policy.keyMaxDays;
  if (!isId('ssh_key', keyId)) {
    throw new DomainError('invalid_request', 'An SSH key ID is ssh_key_ and a ULID.');
  }
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'revokeSshKey',
      meaning: [keyId],
      about: { target: keyId, subjectUserId: caller.userId },
      async apply(tx, commandId) {
        const revoked = await keys.revokeSshKey(tx, { userId: caller.userId, keyId });
        return { result: keyReply(revoked, commandId, days), about: { details: revoked.key.fingerprint } };
      },
    },
  );
};

function keyReply(
  { key, set }: { key: SshKey; set: SshKeySet },
  commandId: string,
  days: number | undefined,
) {
  return { ssh_key: keyBody(key, days), ssh_key_set: keySetBody(set), command_id: commandId };
}

/** `days`: for how long keys are good; undefined: for good. */
function keyBody(key: SshKey, days: number | undefined) {
  const lapse = key.state === 'active' ? lapseOf(Date.parse(key.createdAt), days, 0) : undefined;
  return {
    id: key.id,
    user_id: key.userId,
    key_type: key.type,
    public_material: key.material,
    fingerprint: key.fingerprint,
    lifecycle_state: key.state,
    ...(key.revokedAt === null ? {} : { revoked_at: key.revokedAt }),
    ...(lapse && { lapses_at: new Date(lapse.at).toISOString() }),
    created_at: key.createdAt,
    created_by_user_id: key.createdByUserId,
    created_command_id: key.createdCommandId,
    source_revision: key.sourceRevision,
  };
}

function keySetBody({ userId, generation, sourceHash, createdAt }: SshKeySet) {
  return { user_id: userId, generation, source_hash: sourceHash, created_at: createdAt };
}

import { dayMs } from '../../domain/access/lapse.ts';
import { keyLabel, parseSshPublicKey, type SshKey, type SshKeySet } from '../../domain/access/ssh-key.ts';
import { invalidRequest, notFound } from '../../domain/error.ts';
import { isId } from '../../domain/id.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { runCommand } from '../../store/audit/commands.ts';
import type { Store } from '../../store/engine/index.ts';
import { toTime } from '../../store/engine/time.ts';
import * as keys from '../../store/people/ssh-keys.ts';
import { type Operation, writes } from './operation.ts';

export const listSshKeys: Operation<'listSshKeys'> = async ({ store }, { caller }) => {
  const [list, set] = await Promise.all([
    keys.listSshKeys(store.read, caller.userId),
    keys.findSshKeySet(store.read, caller.userId),
  ]);
  return { keys: list.map((key) => keyBody(key, store)), generation: set?.generation ?? 0 };
};

export const listKeyClusters: Operation<'listKeyClusters'> = async ({ store }, { caller, path }) => {
  const own = await keys.listSshKeys(store.read, caller.userId);
  if (!own.some(({ id }) => id === path.keyID)) {
    throw notFound('You have no SSH key with this ID.');
  }
  const drops = await keys.listDrops(store.read, caller.userId, path.keyID);
  return {
    clusters: drops.map((drop) => snakeCased(drop, ['clusterId', 'clusterName', 'droppedAt'])),
  };
};

/** Registers a key for the caller. `invalid_state` if it was ever registered, by anyone. */
export const registerSshKey: Operation<'registerSshKey'> = async ({ store }, request) => {
  const { securityKeys } = store.lapses.policy;
  const parsed = parseSshPublicKey(request.body.public_key, { securityKeys });
  const key = { ...parsed, label: keyLabel(parsed.comment) };
  const { userId, sourceAddress: from } = request.caller;
  return runCommand(store, request, {
    operation: 'registerSshKey',
    meaning: [key.material],
    about: { target: 'ssh_key', subjectUserId: userId, details: key.fingerprint },
    read: (tx) => keys.findBeforeKey(tx.db, { userId, key }),
    async apply(tx, commandId, before) {
      const made = await keys.createSshKey(tx, { userId, key, from, commandId, before });
      return { result: keyReply(made, commandId, store), about: { target: made.key.id } };
    },
  });
};

export const renameSshKey = writes('renameSshKey', ({ store }, { body, caller: { userId }, path }) => {
  const keyId = keyIdOf(path);
  const label = keyLabel(body.label);
  return {
    meaning: [keyId, label],
    about: { target: keyId, subjectUserId: userId },
    async apply(tx, commandId) {
      const key = await keys.updateKeyLabel(tx, { userId, keyId, label });
      const about = { details: key.fingerprint };
      return { result: { ssh_key: keyBody(key, store), command_id: commandId }, about };
    },
  };
});

/** Revokes a key of the caller's. Revoking it again changes nothing and succeeds. */
export const revokeSshKey = writes('revokeSshKey', ({ store }, { caller: { userId }, path }) => {
  const keyId = keyIdOf(path);
  return {
    meaning: [keyId],
    about: { target: keyId, subjectUserId: userId },
    async apply(tx, commandId) {
      const revoked = await keys.revokeSshKey(tx, { userId, keyId });
      const about = { details: revoked.key.fingerprint };
      return { result: keyReply(revoked, commandId, store), about, takesAway: revoked.isNew };
    },
  };
});

function keyIdOf({ keyID: keyId }: { keyID: string }): string {
  if (!isId('ssh_key', keyId)) throw invalidRequest('An SSH key ID is ssh_key_ and a ULID.');
  return keyId;
}

function keyReply({ key, set }: { key: SshKey; set: SshKeySet }, commandId: string, store: Store) {
  return {
    ssh_key: keyBody(key, store),
    ssh_key_set: snakeCased(set, ['userId', 'generation', 'sourceHash', 'createdAt']),
    command_id: commandId,
  };
}

function keyBody(key: SshKey, { lapses }: Store) {
  const days = key.state === 'active' ? lapses.policy.keyMaxDays : undefined;
  return {
    ...snakeCased(key, ['id', 'userId', 'fingerprint', 'createdAt', 'createdByUserId']),
    ...snakeCased(key, ['createdCommandId', 'sourceRevision']),
    key_type: key.type,
    public_material: key.material,
    lifecycle_state: key.state,
    ...present(snakeCased(key, ['revokedAt', 'label', 'createdFrom', 'lastUsedAt', 'lastUsedFrom'])),
    ...(days !== undefined && { lapses_at: toTime(Date.parse(key.createdAt) + days * dayMs) }),
  };
}

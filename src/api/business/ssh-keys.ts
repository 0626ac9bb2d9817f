/** The caller's own SSH keys. */
import { lapseOf } from '../../domain/access/lapse.ts';
import { parseSshPublicKey, type SshKey, type SshKeySet } from '../../domain/access/ssh-key.ts';
import { invalidRequest, notFound } from '../../domain/error.ts';
import { isId } from '../../domain/id.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { runCommand } from '../../store/audit/commands.ts';
import { toTime } from '../../store/engine/time.ts';
import * as keys from '../../store/people/ssh-keys.ts';
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
    throw notFound('You have no SSH key with this ID.');
  }
  const drops = await keys.listDrops(store.read, caller.userId, path.keyID);
  return {
    clusters: drops.map((drop) => snakeCased(drop, ['clusterId', 'clusterName', 'droppedAt'])),
  };
};

/** Registers a key for the caller. `invalid_state` when anyone registered it before. */
export const registerSshKey: Operation<'registerSshKey'> = async ({ store }, request) => {
  const key = parseSshPublicKey(request.body.public_key);
  const { userId } = request.caller;
  const days = store.lapses.policy.keyMaxDays;
  return runCommand(store, request, {
    operation: 'registerSshKey',
    meaning: [key.material],
    about: { target: 'ssh_key', subjectUserId: userId, details: key.fingerprint },
    read: (tx) => keys.findBeforeKey(tx.db, { userId, key }),
    async apply(tx, commandId, before) {
      const made = await keys.createSshKey(tx, { userId, key, commandId, before });
      return { result: keyReply(made, commandId, days), about: { target: made.key.id } };
    },
  });
};

/** Revokes one of the caller's keys. Revoking a revoked one answers with it and changes nothing. */
export const revokeSshKey: Operation<'revokeSshKey'> = async ({ store }, request) => {
  const { keyID: keyId } = request.path;
  const { userId } = request.caller;
  const days = store.lapses.policy.keyMaxDays;
  if (!isId('ssh_key', keyId)) {
    throw invalidRequest('An SSH key ID is ssh_key_ and a ULID.');
  }
  return runCommand(store, request, {
    operation: 'revokeSshKey',
    meaning: [keyId],
    about: { target: keyId, subjectUserId: userId },
    async apply(tx, commandId) {
      const revoked = await keys.revokeSshKey(tx, { userId, keyId });
      return { result: keyReply(revoked, commandId, days), about: { details: revoked.key.fingerprint } };
    },
  });
};

function keyReply(
  { key, set }: { key: SshKey; set: SshKeySet },
  commandId: string,
  days: number | undefined,
) {
  return {
    ssh_key: keyBody(key, days),
    ssh_key_set: snakeCased(set, ['userId', 'generation', 'sourceHash', 'createdAt']),
    command_id: commandId,
  };
}

/** `days`: for how long keys are good; undefined: for good. */
function keyBody(key: SshKey, days: number | undefined) {
  const lapse = key.state === 'active' ? lapseOf(Date.parse(key.createdAt), days, 0) : undefined;
  return {
    ...snakeCased(key, ['id', 'userId', 'fingerprint', 'createdAt', 'createdByUserId']),
    ...snakeCased(key, ['createdCommandId', 'sourceRevision']),
    key_type: key.type,
    public_material: key.material,
    lifecycle_state: key.state,
    ...present({ revoked_at: key.revokedAt, lapses_at: lapse && toTime(lapse.at) }),
  };
}

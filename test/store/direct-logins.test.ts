/** Who logs in past the gateway: the list of a cluster that moves in, how it shrinks, and what a plan says about it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listRestarts, listSlurmAccounts } from '../../src/api/business/member-plan.ts';
import { describePlan } from '../../src/cli/plan-text.ts';
import type { SshSession } from '../../src/domain/access/ssh-session.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { directPeople } from '../../src/domain/slurm/direct.ts';
import { entryOf } from '../../src/service/compose/session-records.ts';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import { createAccessList, findManifest } from '../../src/store/access/access-lists.ts';
import { appendSessionEntries } from '../../src/store/audit/open-sessions.ts';
import { deleteOld } from '../../src/store/audit/retention.ts';
import { removeByHand } from '../../src/store/organizations/membership-changes.ts';
import { createSshKey, revokeSshKey } from '../../src/store/people/ssh-keys.ts';
import { alpha } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, requireRow, userId } from '../support/store.ts';

const start = Date.parse('2030-01-01T12:00:00.000Z');
const hostKey = 'ssh-ed25519 AAAA';
const member = (username: string, permissions: ('clusters.read' | 'clusters.ssh')[] = ['clusters.ssh']) => ({
  ...{ email: `${username}@physics.example`, role: 'member' as const, username, permissions },
});
const lab: Lab = {
  organizations: [
    {
      ...{ slug: 'physics', name: 'Physics' },
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        ...['bob', 'carol', 'dan'].map((name) => member(name)),
        member('eve', ['clusters.read']),
      ],
    },
  ],
  clusters: [
    {
      ...{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk' },
      slurm: {
        login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
        controller: { host: '10.0.0.5', hostKey },
        manage: { identityFile: '/etc/andromeda/manage' },
        rollout: 'live',
        direct: { until: '2030-01-31', services: ['backup', 'eve'] },
      },
    },
  ],
};

/** bob and dan have keys; the access list is made. */
async function openLab() {
  let now = start;
  const opened = await openTestStore(lab, () => now);
  const { store } = opened;
  const { id: organizationId } = await requireRow(store.read, 'organizations', { slug: 'physics' });
  const idOf = (name: string) => userId(store, `${name}@physics.example`);
  const key = () => ({ type: 'ssh-ed25519' as const, material: newPublicKey(), fingerprint: newPublicKey() });
  const keys = new Map<string, string>();
  for (const name of ['bob', 'dan']) {
    const registration = { userId: await idOf(name), key: key(), commandId: '' };
    keys.set(name, (await store.write((tx) => createSshKey(tx, registration))).key.id);
  }
  await createAccessList(store, { id: alpha, organizationId, desiredGeneration: 1 });
  const project = () => updateListedUsers(store, organizationId);
  await project();
  const manifest = async () => {
    const found = await findManifest(store, alpha);
    assert.ok(found);
    return found;
  };
  const session = async (name: string): Promise<SshSession> => ({
    ...{ id: `${name}-session`, loginName: `${alpha}.${name}`, clusterId: alpha, userId: await idOf(name) },
    ...{ username: name, keyId: keys.get(name) ?? '', fingerprint: 'SHA256:x', remoteAddress: '192.0.2.7' },
    ...{
      loginNode: '10.0.0.5:22',
      openedAt: new Date(now).toISOString(),
      channels: 0,
      bytesUp: 0,
      bytesDown: 0,
    },
  });
  return {
    ...{ store, organizationId, idOf, keys, project, manifest, session },
    advance: (days: number) => {
      now += days * 86_400_000;
    },
    names: async () => {
      const { people = [], services = [] } = (await manifest()).direct ?? {};
      return [...people, ...services.map((name) => `${name}!`)];
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('people on the access list come in directly until they came by the gateway once; services stay, members are none', async () => {
  await using one = await openLab();
  const { store, names, manifest, session } = one;
  // eve may not log in, and as a member she is no service either.
  const sorted = async () => (await names()).sort();
  assert.deepEqual(await sorted(), ['ada', 'backup!', 'bob', 'carol', 'dan']);
  const before = await manifest();
  assert.ok(before.direct);
  const left = ['ada (no key yet)', 'bob', 'carol (no key yet)', 'dan'];
  assert.deepEqual(directPeople(before.direct).sort(), left);
  const changes: string[] = [];
  const stop = store.onChange(['cluster'], (all) => changes.push(...all.map(({ clusterId }) => clusterId)));
  const open = async (name: string) => {
    const event = { kind: 'opened' as const, at: start, session: await session(name) };
    await appendSessionEntries(store, [entryOf(event)]);
  };
  await open('bob');
  assert.deepEqual(await sorted(), ['ada', 'backup!', 'carol', 'dan']);
  // By a new generation every host confirms the shorter list; nothing else changed.
  const after = await manifest();
  assert.deepEqual([after.generation, after.listVersion], [before.generation + 1, before.listVersion]);
  assert.deepEqual(changes, [alpha], 'the sync pass is woken');
  await open('bob');
  assert.equal((await manifest()).generation, after.generation, 'only the first time');
  stop();
});

test('what is forgotten of sessions names no one again', async () => {
  await using one = await openLab();
  const { store, names, session } = one;
  const uses = { commands: [], commandCount: 0, forwards: [], forwardCount: 0, shells: 1, files: 0 };
  const of = await session('dan');
  const closed = entryOf({ kind: 'closed', at: start, session: of, reason: 'left', uses });
  await appendSessionEntries(store, [entryOf({ kind: 'opened', at: start, session: of }), closed]);
  await deleteOld(store, 'ssh_sessions', start + 86_400_000);
  assert.equal((await names()).includes('dan'), false);
});

test('who revoked their last key, left or lost the permission is off the list; after the day only services are on it', async () => {
  await using one = await openLab();
  const { store, names, project, idOf, keys, organizationId, advance } = one;
  const bob = { userId: await idOf('bob'), keyId: keys.get('bob') ?? '' };
  await store.write((tx) => revokeSshKey(tx, bob));
  const carol = { organizationId, userId: await idOf('carol') };
  await store.write((tx) => removeByHand(tx, carol));
  await project();
  assert.deepEqual((await names()).sort(), ['ada', 'backup!', 'dan']);
  advance(30);
  assert.deepEqual((await names()).sort(), ['ada', 'backup!', 'dan'], 'on the last day');
  advance(1);
  assert.deepEqual(await names(), ['backup!']);
});

test('a plan of a revocation names who still comes in past the gateway', async () => {
  await using one = await openLab();
  const { store, idOf, organizationId } = one;
  const restarts = await store.write(async (tx) => {
    const before = await listSlurmAccounts(tx);
    await removeByHand(tx, { organizationId, userId: await idOf('bob') });
    return listRestarts(tx, before);
  });
  assert.deepEqual(
    [restarts[0]?.removed, [...(restarts[0]?.direct?.people ?? [])].sort()],
    [['bob'], ['ada', 'carol', 'dan']],
  );
  const text = describePlan({ changes: [], restarts }, '');
  assert.match(
    text,
    /^ {2}Log in past the gateway until 2030-01-31, also with keys revoked here: [a-z, ]*carol[a-z, ]*\.$/m,
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/lab.ts';
import { type PermissionKey, permissionCatalog } from '../../src/domain/permission.ts';
import { parseSshPublicKey } from '../../src/domain/ssh-key.ts';
import {
  acceptAccessList,
  findAccessList,
  findManifest,
  listAccessListUsers,
  updateAccessList,
} from '../../src/store/access-lists.ts';
import type { Store } from '../../src/store/index.ts';
import { createSshKey, revokeSshKey } from '../../src/store/ssh-keys.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore } from '../support/store.ts';

const people = ['a', 'b', 'c', 'd', 'e'];
const lab: Lab = {
  organizations: [
    {
      slug: 'x',
      name: 'X',
      members: people.map((name, i) => ({
        email: `${name}@x.example`,
        role: i === 0 ? 'owner' : 'member',
        username: name,
      })),
    },
  ],
  clusters: [
    { name: 'alpha', organization: 'x', scheduler: 'sunk', simulated: { computeNodes: 1, gpusPerNode: 1 } },
  ],
};

/** What the contract says of one person, kept in the plainest way. */
interface Model {
  id: string;
  username: string;
  role: string;
  granted: Set<string>;
  keys: Map<string, string>;
  generation: number;
  member: boolean;
}

const givesSsh = ['clusters.ssh', 'clusters.ssh.admin', 'clusters.configure'];
const givesAdmin = ['clusters.ssh.admin', 'clusters.configure'];

function expectedList(models: Model[]) {
  const holds = (model: Model, keys: string[]) =>
    model.role === 'owner' || keys.some((key) => model.granted.has(key));
  return models
    .filter((model) => model.member && holds(model, givesSsh))
    .map((model) => ({
      userId: model.id,
      username: model.username,
      accessMode: holds(model, givesAdmin) ? 'admin' : 'use',
      desiredLoginState: model.keys.size > 0 ? 'ready' : 'waiting_for_key',
      keySetGeneration: model.generation,
      shell: '/bin/bash',
    }))
    .sort((a, b) => (a.userId < b.userId ? -1 : 1));
}

async function step(
  store: Store,
  orgId: string,
  model: Model,
  pick: (below: number) => number,
): Promise<void> {
  const now = Date.now();
  const what = pick(5);
  if (what === 0) {
    const { key } = await store.write((tx) =>
      createSshKey(tx, { userId: model.id, key: parseSshPublicKey(newPublicKey()), commandId: 'c', now }),
    );
    model.keys.set(key.id, key.fingerprint);
    model.generation++;
  } else if (what === 1) {
    const [keyId] = [...model.keys.keys()].slice(pick(Math.max(1, model.keys.size)));
    if (keyId === undefined) return;
    // Twice, since revoking again changes nothing.
    for (let i = 0; i < 2; i++) await store.write((tx) => revokeSshKey(tx, { userId: model.id, keyId, now }));
    model.keys.delete(keyId);
    model.generation++;
  } else if (what === 2 && model.role !== 'owner') {
    model.member = !model.member;
    await store.write(({ db }) =>
      db
        .updateTable('memberships')
        .set('lifecycle_state', model.member ? 'active' : 'removed')
        .where('user_id', '=', model.id)
        .execute(),
    );
  } else {
    const permission = permissionCatalog[pick(permissionCatalog.length)]?.key as PermissionKey;
    const row = { org_id: orgId, user_id: model.id, permission };
    await store.write(async ({ db }) => {
      const where = db.deleteFrom('member_permissions').where('user_id', '=', model.id);
      if (model.granted.has(permission)) await where.where('permission', '=', permission).execute();
      else await db.insertInto('member_permissions').values(row).execute();
    });
    if (!model.granted.delete(permission)) model.granted.add(permission);
  }
}

test('after any interleaving of changes the list is what recomputing it from nothing gives', async (t) => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  let state = seed;
  const pick = (below: number) => {
    // Mulberry32.
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
  await using opened = await openTestStore(lab);
  const { store } = opened;
  const { id, organization_id: organizationId } = await store.read
    .selectFrom('clusters')
    .selectAll()
    .executeTakeFirstOrThrow();
  const rows = await store.read
    .selectFrom('memberships as m')
    .innerJoin('organization_usernames as n', 'n.user_id', 'm.user_id')
    .select(['m.user_id as id', 'm.role', 'n.username'])
    .execute();
  const models = rows.map((row) => ({
    ...row,
    granted: new Set<string>(),
    keys: new Map<string, string>(),
    generation: 0,
    member: true,
  }));
  const numbers = new Map<string, number>();
  let before: { generation: number; text: string } = { generation: 0, text: '' };

  for (let round = 0; round < 120; round++) {
    for (let changes = pick(3); changes >= 0; changes--) {
      const model = models[pick(models.length)];
      if (model) await step(store, organizationId, model, pick);
    }
    const changed = await updateAccessList(store, { id, organizationId, desiredGeneration: 1 }, Date.now());
    assert.equal(
      await updateAccessList(store, { id, organizationId, desiredGeneration: 1 }, Date.now()),
      false,
    );

    const expected = expectedList(models);
    const text = JSON.stringify(expected);
    const users = await listAccessListUsers(store.read, id);
    assert.deepEqual(
      users.map(({ uid: _, ...user }) => user),
      expected,
      `seed ${seed}, round ${round}`,
    );
    const { generation } = (await findAccessList(store.read, id)) ?? { generation: -1 };
    assert.equal(changed, text !== before.text, 'the generation rises only when the list changes');
    assert.equal(generation, before.generation + (changed ? 1 : 0));
    before = { generation, text };

    if (pick(3) === 0) continue;
    await acceptAccessList(store, id, Date.now());
    const manifest = await findManifest(store.read, id);
    assert.equal(manifest?.generation, generation);
    for (const account of manifest?.accounts ?? []) {
      const model = models.find((one) => one.id === account.userId);
      assert.deepEqual(account.keyFingerprints, [...(model?.keys.values() ?? [])]);
      assert.equal(account.uid, account.gid);
      assert.equal(account.uid, numbers.get(account.userId) ?? account.uid, 'a number never changes');
      numbers.set(account.userId, account.uid);
    }
    assert.equal(manifest?.accounts.length, expected.length);
  }
  assert.equal(new Set(numbers.values()).size, numbers.size, 'no number is used twice');
});

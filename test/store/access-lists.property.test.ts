import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManifestAccount, SlurmReport } from '../../src/domain/access/manifest.ts';
import { type PermissionKey, permissionCatalog } from '../../src/domain/access/permission.ts';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import {
  deletePastEntries,
  listWantedUsers,
  updateListedUser,
  updateListedUsers,
} from '../../src/store/access/access-list-users.ts';
import {
  createAccessList,
  findManifest,
  readAccessList,
  updateDesiredGeneration,
} from '../../src/store/access/access-lists.ts';
import { listDrivenClusters, startRelease } from '../../src/store/clusters/clusters.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { deleteRows, insertRow, updateRows } from '../../src/store/engine/rows.ts';
import { createGrant } from '../../src/store/organizations/grants.ts';
import { createSshKey, revokeSshKey } from '../../src/store/people/ssh-keys.ts';
import { fieldsOf } from '../support/fields.ts';
import { mulberry } from '../support/random.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { granting, openTestStore, requireRow, slurmReport, userId } from '../support/store.ts';

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
  clusters: ['alpha', 'beta'].map((name) => ({
    name,
    organization: 'x',
    scheduler: 'sunk',
    simulated: { computeNodes: 1, gpusPerNode: 1 },
  })),
};

const report = slurmReport({ manifestGeneration: 1 });

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
    model.role !== 'member' || keys.some((key) => model.granted.has(key));
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
  organizationId: string,
  model: Model,
  pick: (below: number) => number,
): Promise<void> {
  const what = pick(7);
  if (what === 0) {
    const { key } = await store.write((tx) =>
      createSshKey(tx, { userId: model.id, key: parseSshPublicKey(newPublicKey()), commandId: 'c' }),
    );
    model.keys.set(key.id, key.fingerprint);
    model.generation++;
  } else if (what === 1) {
    const [keyId] = [...model.keys.keys()].slice(pick(Math.max(1, model.keys.size)));
    if (keyId === undefined) return;
    // Twice, since revoking again changes nothing.
    for (let i = 0; i < 2; i++) await store.write((tx) => revokeSshKey(tx, { userId: model.id, keyId }));
    model.keys.delete(keyId);
    model.generation++;
  } else if (what === 2 && model.role !== 'owner') {
    model.member = !model.member;
    const lifecycle_state = model.member ? 'active' : 'removed';
    await store.write(({ db }) => updateRows(db, 'memberships', { user_id: model.id }, { lifecycle_state }));
  } else if (what === 3 && model.username !== 'a') {
    model.role = model.role === 'member' ? 'admin' : 'member';
    const role = model.role as 'member' | 'admin';
    await store.write(({ db }) =>
      db.updateTable('memberships').set({ role }).where('user_id', '=', model.id).execute(),
    );
  } else if (what === 4) {
    // It is for Kubernetes, and gives no SSH.
    const cluster = await store.read.selectFrom('clusters').select('id').executeTakeFirstOrThrow();
    const relation = 'kubernetes.admin' as const;
    const about = { clusterId: cluster.id, userId: model.id, grantedBy: model.id };
    await store.write((tx) =>
      createGrant(tx, { ...about, relation, scope: null, roleId: null, expiresAt: null }),
    );
  } else {
    const permission = permissionCatalog[pick(permissionCatalog.length)]?.key as PermissionKey;
    const row = granting({ organizationId, userId: model.id }, permission);
    await store.write(async ({ db }) => {
      const { since: _, ...same } = row;
      if (model.granted.has(permission)) await deleteRows(db, 'holdings', same);
      else await insertRow(db, 'holdings', row);
    });
    if (!model.granted.delete(permission)) model.granted.add(permission);
  }
}

test('after any interleaving of changes the list is what recomputing it from nothing gives', async (t) => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  const random = mulberry(seed);
  const pick = (below: number) => Math.floor(random() * below);
  await using store = await openTestStore(lab);
  const clusters = await listDrivenClusters(store.read);
  const organizationId = clusters[0]?.organizationId ?? '';
  const rows = await store.read
    .selectFrom('memberships as m')
    .innerJoin('organization_usernames as n', 'n.user_id', 'm.user_id')
    .select(['m.user_id as id', 'm.role', 'n.username'])
    .execute();
  const models: Model[] = rows.map((row) => ({
    ...row,
    granted: new Set<string>(),
    keys: new Map<string, string>(),
    generation: 0,
    member: true,
  }));
  const numbers = new Map<string, number>();
  /** What a cluster confirmed, by cluster. */
  const confirmed = new Map<string, readonly ManifestAccount[]>();
  const generations = new Map<string, number>();
  // The first cluster of an organization has its list brought up to date once.
  await updateListedUsers(store, organizationId);
  let text = JSON.stringify(expectedList(models));

  for (let round = 0; round < 150; round++) {
    const where = `seed ${seed}, round ${round}`;
    const touched = new Set<string>();
    for (let changes = pick(3); changes >= 0; changes--) {
      const model = models[pick(models.length)];
      if (!model) continue;
      await step(store, organizationId, model, pick);
      touched.add(model.id);
    }
    // Notices of single people, or none of them and a sweep: the result is the same.
    let rises = 0;
    if (pick(2) === 0) {
      for (const userId of touched) rises += (await updateListedUser(store, userId)).length;
    } else rises += Number(await updateListedUsers(store, organizationId));
    assert.equal(await updateListedUsers(store, organizationId), false, where);

    const expected = expectedList(models);
    const fingerprints = (userId: string) => [
      ...(models.find(({ id }) => id === userId)?.keys.values() ?? []),
    ];
    assert.deepEqual(
      await listWantedUsers(store.read, organizationId, Date.now()),
      expected.map((user) => ({ ...user, keyFingerprints: fingerprints(user.userId) })),
      where,
    );
    assert.equal(
      rises > 0,
      text !== JSON.stringify(expected),
      'the list changes only when someone on it does',
    );
    text = JSON.stringify(expected);

    for (const cluster of clusters) {
      // The second cluster comes later.
      if (cluster.name === 'beta' && round < 40) continue;
      const before = generations.get(cluster.id);
      if (before === undefined) await createAccessList(store, cluster);
      if (pick(4) === 0) {
        // A change of the cluster's configuration alone is no change of the list.
        cluster.desiredGeneration++;
        await updateDesiredGeneration(store, cluster);
      }
      const found = await readAccessList(store, cluster.id);
      assert.deepEqual(
        found?.users.map(({ uid: _, gid: __, given: ___, ...user }) => user),
        expected.map((user) => ({ ...user, keyFingerprints: fingerprints(user.userId) })),
        where,
      );
      assert.equal(found?.list.generation, before === undefined ? 1 : before + rises, where);
      assert.equal(found?.list.desiredGeneration, cluster.desiredGeneration);
      generations.set(cluster.id, found?.list.generation ?? 0);
    }

    if (pick(3) === 0) continue;
    for (const cluster of clusters) {
      const manifest = await findManifest(store, cluster.id);
      if (!generations.has(cluster.id)) continue;
      assert.equal(manifest?.generation, generations.get(cluster.id));
      assert.deepEqual(
        fieldsOf(manifest?.accounts, 'userId', 'keyFingerprints'),
        expected.map(({ userId }) => [userId, fingerprints(userId)]),
        where,
      );
      for (const { userId, uid, gid } of manifest?.accounts ?? []) {
        assert.equal(uid, gid);
        assert.equal(uid, numbers.get(userId) ?? uid, 'a number never changes');
        numbers.set(userId, uid);
      }
      if (!manifest || pick(3) === 0) continue;
      const { listVersion, generation: manifestGeneration, desiredGeneration } = manifest;
      const applied = { listVersion, manifestGeneration, desiredGeneration };
      await recordSlurmReport(store, cluster.id, { ...report, ...applied });
      confirmed.set(cluster.id, manifest.accounts);
    }
    await deletePastEntries(store, organizationId);
    for (const [clusterId, accounts] of confirmed) {
      for (const { id } of models) {
        const account = accounts.find(({ userId }) => userId === id);
        const { loginState, keyFingerprints } = account ?? {};
        const person = await findPersonOnCluster(store, clusterId, id);
        assert.deepEqual(
          [person?.observed.keySetGeneration, person?.facts.confirmed],
          account ? [account.keySetGeneration, { loginState, keyFingerprints }] : [0, undefined],
          where,
        );
      }
    }
  }
  assert.equal(new Set(numbers.values()).size, numbers.size, 'no number is used twice');
});

/** A store whose clusters of these names have lists. */
async function openLists(...names: string[]) {
  const opened = await openTestStore(lab);
  const { store } = opened;
  const all = await listDrivenClusters(store.read);
  const organizationId = all[0]?.organizationId ?? '';
  const clusters = ['alpha', 'beta'].flatMap((name) => all.find((one) => one.name === name) ?? []);
  await updateListedUsers(store, organizationId);
  for (const one of clusters) if (names.includes(one.name)) await createAccessList(store, one);
  return {
    ...{ store, organizationId, clusters: clusters as [ClusterOfList, ClusterOfList] },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
type ClusterOfList = Awaited<ReturnType<typeof listDrivenClusters>>[number];

test('a withdrawn list names no one, is the newest there is, and rises no more', async () => {
  await using opened = await openLists('alpha', 'beta');
  const { store, organizationId } = opened;
  const [alpha, beta] = opened.clusters;
  for (let i = 0; i < 2; i++)
    await store.write((tx) => startRelease(tx, { clusterId: alpha.id, commandId: null }));
  const { user_id: owner } = await requireRow(store.read, 'memberships', { role: 'owner' });
  const key = parseSshPublicKey(newPublicKey());
  await store.write((tx) => createSshKey(tx, { userId: owner, key, commandId: 'c' }));
  assert.deepEqual(await updateListedUser(store, owner), [organizationId]);
  const of = async (clusterId: string) => {
    const found = await readAccessList(store, clusterId);
    return [found?.list.generation, found?.users.length];
  };
  assert.deepEqual(await of(alpha.id), [2, 0]);
  assert.deepEqual(await of(beta.id), [2, 1]);
  assert.equal((await findPersonOnCluster(store, alpha.id, owner))?.facts.isListed, false);
  assert.equal((await findPersonOnCluster(store, beta.id, owner))?.facts.isListed, true);
  assert.equal(await findManifest(store, alpha.id), undefined);
});

test('what a cluster says of someone by name goes before what its list version says', async () => {
  await using opened = await openLists('alpha');
  const { store } = opened;
  const [alpha] = opened.clusters;
  const manifest = await findManifest(store, alpha.id);
  const [account] = manifest?.accounts ?? [];
  assert.ok(manifest && account);
  const { listVersion } = manifest;
  const shell = async () =>
    (await findPersonOnCluster(store, alpha.id, account.userId))?.observed.shell || undefined;
  const record = (more: Partial<SlurmReport>) => recordSlurmReport(store, alpha.id, { ...report, ...more });
  await record({ listVersion, accounts: [{ ...account, shell: '/bin/other' }] });
  assert.equal(await shell(), '/bin/other');
  await record({ listVersion });
  assert.equal(await shell(), '/bin/bash');
  await record({});
  assert.equal(await shell(), undefined);
  await record({ listVersion: listVersion + 1 });
  assert.equal(await shell(), undefined, 'a version that never was says nothing');
  await record({ accounts: manifest.accounts });
  assert.equal(await shell(), '/bin/bash');
});

test('a list read again after rows of its past were deleted names only those who are on it', async () => {
  await using opened = await openLists('alpha');
  const { store, organizationId } = opened;
  const [cluster, later] = opened.clusters;
  const names = async (clusterId: string) =>
    (await findManifest(store, clusterId))?.accounts.map(({ username }) => username);
  const [b, c] = [await userId(store, 'b@x.example'), await userId(store, 'c@x.example')];
  for (const user_id of [b, c]) {
    const row = granting({ organizationId, userId: user_id }, 'clusters.ssh');
    await store.write(({ db }) => insertRow(db, 'holdings', row));
    await updateListedUser(store, user_id);
  }
  assert.deepEqual(await names(cluster.id), ['a', 'b', 'c']);
  // Meanwhile another server looks after the cluster, which confirms its list, and nothing of before is needed any more.
  const removed = { lifecycle_state: 'removed' as const };
  await store.write(({ db }) => updateRows(db, 'memberships', { user_id: b }, removed));
  await updateListedUser(store, b);
  const { version } = await requireRow(store.read, 'organization_access_lists', { org_id: organizationId });
  const past = async (waiting: SlurmReport['waiting'] = []) => {
    await recordSlurmReport(store, cluster.id, { ...report, listVersion: version, waiting });
    await deletePastEntries(store, organizationId);
    const rows = await store.read
      .selectFrom('access_list_users')
      .select('user_id')
      .where('until_version', 'is not', null)
      .execute();
    return rows.map(({ user_id }) => user_id);
  };
  const late = [{ host: 'a1', listVersion: version - 1, message: 'it does not answer' }];
  assert.deepEqual(await past(late), [b], 'which a host waits for');
  assert.deepEqual(await past(), []);
  assert.deepEqual(await names(cluster.id), ['a', 'c']);
  await createAccessList(store, later);
  assert.deepEqual(await names(later.id), ['a', 'c']);
});

const big: Lab = {
  organizations: [
    {
      slug: 'x',
      name: 'X',
      members: Array.from({ length: 1_200 }, (_, i) => ({
        email: `m${i}@x.example`,
        role: i === 0 ? 'owner' : 'member',
        username: `m${i}`,
        permissions: ['clusters.ssh'],
      })),
    },
  ],
  clusters: lab.clusters ?? [],
};

test('however many people there are, everybody else gets their turn in between', async () => {
  await using store = await openTestStore(big);
  const clusters = await listDrivenClusters(store.read);
  const [alpha] = clusters;
  assert.ok(alpha);
  let turns = 0;
  let going = true;
  const turn = () => {
    turns++;
    if (going) setImmediate(turn);
  };
  const turnsDuring = async (work: () => Promise<unknown>) => {
    turns = 0;
    going = true;
    setImmediate(turn);
    await work();
    going = false;
    return turns;
  };
  const organizationId = alpha.organizationId;
  const counts = [
    await turnsDuring(() => updateListedUsers(store, organizationId)),
    await turnsDuring(async () => {
      for (const cluster of clusters) await createAccessList(store, cluster);
    }),
  ];
  assert.ok(
    counts.every((count) => count >= 2),
    `turns: ${counts}`,
  );
  const found = await readAccessList(store, alpha.id);
  assert.deepEqual([found?.users.length, found?.list.generation], [1_200, 1]);
  assert.equal(new Set(found?.users.map(({ uid }) => uid)).size, 1_200);
  assert.equal((await findManifest(store, alpha.id))?.accounts.length, 1_200);
});

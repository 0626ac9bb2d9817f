/** The numbers of people whom a cluster has from the site's directory, and the hosts on which they cannot log in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import { createAccessList, findManifest, keepNumbers } from '../../src/store/access/access-lists.ts';
import { listDrivenClusters } from '../../src/store/clusters/clusters.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { createSshKey } from '../../src/store/people/ssh-keys.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, slurmReport, userId } from '../support/store.ts';

const accounts = 'directory' as const;
const host = { host: '127.0.0.1', local: true, hostKey: 'ssh-ed25519 AAAA', accounts };
const member = (username: string) => ({ email: `${username}@x.example`, role: 'admin' as const, username });
const lab: Lab = {
  organizations: [
    {
      slug: 'x',
      name: 'X',
      members: [
        { ...member('a'), role: 'owner' },
        member('b'),
        member('c'),
        { ...member('d'), uid: 5000, gid: 100 },
      ],
    },
  ],
  clusters: [
    {
      name: 'alpha',
      organization: 'x',
      scheduler: 'sunk',
      slurm: { login: [{ ...host, name: 'login1' }], controller: host },
    },
  ],
};

test('the number that a directory has first is kept, and brings a new version of the list', async () => {
  await using store = await openTestStore(lab);
  const [cluster] = await listDrivenClusters(store.read);
  assert.ok(cluster);
  await updateListedUsers(store, cluster.organizationId);
  await createAccessList(store, cluster);
  const numbers = async () => {
    const manifest = await findManifest(store, cluster.id);
    const found = manifest?.accounts.map(({ username, uid, gid }) => `${username} ${uid}:${gid}`).sort();
    return { generation: manifest?.generation ?? 0, found: found?.join() };
  };
  const ids = Object.fromEntries(
    await Promise.all(['a', 'b', 'c'].map(async (name) => [name, await userId(store, `${name}@x.example`)])),
  );
  const first = await numbers();
  assert.equal(first.found, 'a 0:0,b 0:0,c 0:0,d 5000:100');
  const seen = { userId: ids['a'], uid: 31_001, gid: 31_000 };
  await keepNumbers(store, cluster.id, [seen, { userId: ids['b'], uid: 31_001, gid: 31_001 }]);
  const second = await numbers();
  assert.deepEqual(second, {
    generation: first.generation + 1,
    found: 'a 31001:31000,b 0:0,c 0:0,d 5000:100',
  });
  // Neither another number later, nor that of another person, changes anything.
  await keepNumbers(store, cluster.id, [
    { ...seen, uid: 31_009 },
    { userId: ids['b'], uid: 5000, gid: 1 },
  ]);
  assert.deepEqual(await numbers(), second);

  const { slurm } = lab.clusters?.[0] ?? {};
  const inFiles = {
    slurm: {
      ...slurm,
      login: [{ ...host, name: 'login1', accounts: 'files' }],
      controller: { ...host, accounts: 'files' },
    },
  };
  await store.write(({ db }) =>
    updateRows(db, 'clusters', { id: cluster.id }, { driver: JSON.stringify(inFiles) }),
  );
  await createAccessList(store, cluster);
  assert.equal((await numbers()).found, 'a 31001:31000,b 20000:20000,c 20001:20001,d 5000:100');
});

test('a person reads which host cannot have their account, and since when', async () => {
  let now = Date.parse('2026-11-28T12:00:00Z');
  await using store = await openTestStore(lab, () => now);
  const [cluster] = await listDrivenClusters(store.read);
  assert.ok(cluster);
  const [a, b] = [await userId(store, 'a@x.example'), await userId(store, 'b@x.example')];
  const blocked = [{ userId: a, host: 'head:22', message: 'the directory has no account a' }];
  for (let times = 0; times < 2; times++) {
    await recordSlurmReport(store, cluster.id, slurmReport({ blocked }));
    now += 60_000;
  }
  const waiting = async (id: string) => (await findPersonOnCluster(store, cluster.id, id))?.waiting;
  assert.deepEqual(await waiting(a), [{ ...blocked[0], since: '2026-11-28T12:00:00.000Z' }]);
  assert.deepEqual(await waiting(b), []);
});

test('a person whose number is not known yet has an account on no cluster of the organization', async () => {
  const beta = { name: 'beta', organization: 'x', scheduler: 'sunk' as const };
  const simulated = { computeNodes: 1, gpusPerNode: 1 };
  const clusters = [...(lab.clusters ?? []), { ...beta, simulated }];
  await using store = await openTestStore({ ...lab, clusters });
  const a = await userId(store, 'a@x.example');
  const key = parseSshPublicKey(newPublicKey());
  await store.write((tx) => createSshKey(tx, { userId: a, key, commandId: 'c' }));
  const driven = await listDrivenClusters(store.read);
  const other = driven.find(({ name }) => name === 'beta');
  assert.ok(other);
  await updateListedUsers(store, other.organizationId);
  for (const cluster of driven) await createAccessList(store, cluster);
  const has = async () => {
    const manifest = await findManifest(store, other.id);
    const { generation: manifestGeneration = 0, listVersion = 0, accounts = [] } = manifest ?? {};
    await recordSlurmReport(store, other.id, slurmReport({ manifestGeneration, listVersion }));
    const account = accounts.find(({ userId: id }) => id === a);
    const person = await findPersonOnCluster(store, other.id, a);
    return [account?.loginState, person?.facts.confirmed?.loginState];
  };
  assert.deepEqual(await has(), ['waiting_for_key', undefined]);
  await keepNumbers(store, driven[0]?.id ?? '', [{ userId: a, uid: 31_001, gid: 31_000 }]);
  assert.deepEqual(await has(), ['ready', 'ready']);
});

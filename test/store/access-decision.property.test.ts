/** `ssh-access` and the gateway decide alike, whatever happened before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlatformDeps, PlatformRequest } from '../../src/api/platform/access.ts';
import { getSshAccess } from '../../src/api/platform/connect.ts';
import { type AccessFacts, decideAccess } from '../../src/domain/access/decision.ts';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createAuthorize } from '../../src/service/compose/gateway.ts';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import { createAccessList, findManifest } from '../../src/store/access/access-lists.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { deleteRows, insertRow, updateRows } from '../../src/store/engine/rows.ts';
import { recordSignIn } from '../../src/store/people/people.ts';
import { createSshKey, revokeSshKey } from '../../src/store/people/ssh-keys.ts';
import { mulberry } from '../support/random.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { granting, isFull, isOnFile, openTestStore, slurmReport } from '../support/store.ts';

/** A round takes ten times as long on PostgreSQL: there, one history, in which everything that is wanted comes up soon. */
const soonSeed = 26;
const leastRounds = isOnFile && isFull ? 1_500 : 161;

const names = ['a', 'b', 'c', 'd'];
const simulated = { computeNodes: 1, gpusPerNode: 1 };
const lab: Lab = {
  organizations: [
    {
      slug: 'x',
      name: 'X',
      members: names.map((name) => ({
        email: `${name}@x.example`,
        role: name === 'a' ? 'owner' : 'member',
        username: name,
        permissions: name === 'a' ? [] : ['clusters.ssh'],
      })),
    },
  ],
  clusters: [
    { name: 'alpha', organization: 'x', scheduler: 'sunk', simulated },
    { name: 'beta', organization: 'x', scheduler: 'kubernetes', simulated },
  ],
};

const loginNode = (username: string | undefined, up: boolean) => ({
  name: `login-${username ?? 'all'}`,
  host: '127.0.0.1',
  port: 22,
  hostKey: 'ssh-ed25519 AAAA',
  up,
  ...(username === undefined ? {} : { username }),
});

interface Person {
  id: string;
  username: string;
  keys: { id: string; fingerprint: string }[];
}

interface World {
  store: Store;
  organizationId: string;
  clusterIds: string[];
  people: Person[];
  /** Of what is written, and of what is asked. */
  clock: { now: number };
  pick(below: number): number;
}

async function startWorld(store: Store, seed: number, clock: { now: number }): Promise<World> {
  const random = mulberry(seed);
  const clusters = await store.read.selectFrom('clusters').selectAll().orderBy('name').execute();
  const people = await store.read
    .selectFrom('organization_usernames')
    .select(['user_id as id', 'username'])
    .orderBy('username')
    .execute();
  return {
    store,
    organizationId: clusters[0]?.organization_id ?? '',
    clusterIds: clusters.map(({ id }) => id),
    people: people.map((person) => ({ ...person, keys: [] })),
    clock,
    pick: (below) => Math.floor(random() * below),
  };
}

/** One change of any kind: by a person, an owner, an operator, a cluster or the clock. */
async function change(world: World): Promise<void> {
  const { store, people, pick, organizationId } = world;
  const person = people[pick(people.length)];
  const clusterId = world.clusterIds[pick(world.clusterIds.length)];
  if (!person || clusterId === undefined) return;
  const { id: userId, keys } = person;
  const toggle = async (table: 'memberships' | 'users' | 'organizations', off: string, chance: number) => {
    const state = pick(chance) === 0 ? off : 'active';
    const [column, value] =
      table === 'organizations' ? ['id', organizationId] : [table === 'users' ? 'id' : 'user_id', userId];
    await store.write(({ db }) =>
      db
        .updateTable(table)
        .set({ lifecycle_state: state as 'active' })
        .where(column as 'id', '=', value as string)
        .execute(),
    );
  };
  const steps: (() => Promise<unknown>)[] = [
    async () => {
      const key = parseSshPublicKey(newPublicKey());
      const about = { userId, key, commandId: 'c' };
      const made = await store.write((tx) => createSshKey(tx, about));
      keys.push({ id: made.key.id, fingerprint: made.key.fingerprint });
    },
    async () => {
      const key = keys[pick(keys.length)];
      if (key) await store.write((tx) => revokeSshKey(tx, { userId, keyId: key.id }));
    },
    () => toggle('memberships', 'removed', 3),
    () => toggle('users', 'deactivated', 6),
    () => toggle('organizations', 'retired', 8),
    () =>
      store.write(async ({ db }) => {
        await deleteRows(db, 'holdings', { user_id: userId, kind: 'permission' });
        const permission = ['clusters.ssh', 'clusters.ssh.admin', 'clusters.configure', 'clusters.read'][
          pick(4)
        ];
        if (permission === undefined || pick(4) === 0) return;
        const end = pick(2) === 0 ? new Date(world.clock.now + pick(300) * 60_000).toISOString() : null;
        const row = granting({ organizationId, userId }, permission);
        await insertRow(db, 'holdings', { ...row, expires_at: end });
      }),
    () =>
      store.write(({ db }) =>
        updateRows(db, 'clusters', { id: clusterId }, { state: pick(4) === 0 ? 'releasing' : 'active' }),
      ),
    () => updateListedUsers(store, organizationId),
    () => report(world, clusterId),
    () => report(world, clusterId),
    async () => {
      world.clock.now += pick(90_000);
    },
    // Time in which access and keys lapse, and a sign-in.
    async () => {
      if (pick(4) === 0) world.clock.now += pick(24) * 3_600_000;
    },
    () => recordSignIn(store, userId, world.clock.now),
  ];
  await steps[pick(steps.length)]?.();
}

/** A cluster says how it is: with the newest list or without, login nodes of every kind, some people named, a fault. */
async function report(world: World, clusterId: string): Promise<void> {
  const { store, people, pick } = world;
  const manifest = await findManifest(store, clusterId);
  const nodes = [
    [],
    [loginNode(undefined, true)],
    [loginNode(undefined, false)],
    people.map(({ username }) => loginNode(username, pick(3) > 0)),
  ];
  const applied = pick(4) > 0 && manifest;
  const named = pick(4) === 0 ? (manifest?.accounts[pick(manifest.accounts.length)] ?? undefined) : undefined;
  const report = slurmReport({
    ...(applied ? { manifestGeneration: applied.generation, listVersion: applied.listVersion } : {}),
    loginNodes: nodes[pick(nodes.length)] ?? [],
    accounts: named ? [{ ...named, loginState: 'waiting_for_key', keyFingerprints: [] }] : [],
    failure: pick(3) === 0 ? 'the disk is full' : null,
  });
  await recordSlurmReport(store, clusterId, report);
}

test('ssh-access says ready for a person and key exactly when the gateway admits that key at that moment', async (t) => {
  const seed = Number(process.env['SEED'] ?? (isOnFile ? Math.floor(Math.random() * 2 ** 31) : soonSeed));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  const clock = { now: Date.now() };
  await using opened = await openTestStore(lab, () => clock.now, {
    maxHoursWithoutSignIn: 48,
    keyMaxDays: 3,
  });
  const world = await startWorld(opened.store, seed, clock);
  const { store, organizationId } = world;
  await updateListedUsers(store, organizationId);
  for (const id of world.clusterIds)
    await createAccessList(store, { id, organizationId, desiredGeneration: 1 });
  const authorize = createAuthorize({ store, graceMs: 300_000 });
  const gateway = {
    hostname: 'gateway.example',
    port: 22,
    hostKeys: () => [{ publicKey: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:x' }],
  };
  const sshAccess = (userId: string, clusterId: string, keyFingerprint?: string) =>
    getSshAccess(
      { store, gateway } as unknown as PlatformDeps,
      {
        caller: { userId, sourceAddress: '' },
        path: { clusterId },
        query: { organizationId, keyFingerprint },
        now: world.clock.now,
      } as PlatformRequest<'getSshAccess'>,
    ).catch((error: { code: string }) => ({ ready: false, reason: error.code }));

  const seen = new Map<string, number>();
  // A history in which nothing happens proves nothing: one that has not come by all of these goes on.
  const wanted = ['ready', 'forbidden', 'projection_pending', 'observation_stale', 'lapsed', 'ended'];
  const goesOn = (round: number) =>
    round < leastRounds || (round < 30_000 && !wanted.every((one) => seen.has(one)));
  for (let round = 0; goesOn(round); round++) {
    await change(world);
    for (const { id, username, keys } of world.people) {
      for (const clusterId of world.clusterIds) {
        const access = await sshAccess(id, clusterId);
        seen.set(access.reason, (seen.get(access.reason) ?? 0) + 1);
        if ('lapsed' in access) seen.set('lapsed', (seen.get('lapsed') ?? 0) + 1);
        for (const { fingerprint } of keys.slice(-3)) {
          const loginName = `${clusterId}.${username}`;
          const { allowed } = await authorize({ loginName, fingerprint, publicKey: '', remoteAddress: '' });
          const ofKey = await sshAccess(id, clusterId, fingerprint);
          assert.equal(ofKey.ready, allowed, `seed ${seed}, round ${round}: ${ofKey.reason}`);
          const isActive = ofKey.reason !== 'no_keys';
          if (access.ready && isActive) assert.ok(allowed, 'ready means every active key is admitted');
          const { facts } = (await findPersonOnCluster(store, clusterId, id)) ?? {};
          const hasEnded = decideAccess(facts as AccessFacts, { fingerprint });
          if (!hasEnded.allowed && hasEnded.obstacle === 'access_ended') {
            seen.set('ended', (seen.get('ended') ?? 0) + 1);
            assert.ok(!allowed && ofKey.reason === 'forbidden', 'nobody is admitted behind the end');
          }
          assert.ok(!('lapsed' in ofKey) || !allowed, 'nobody whose access lapsed is admitted');
        }
      }
    }
  }
  t.diagnostic(JSON.stringify([...seen]));
  for (const reason of wanted) assert.ok(seen.has(reason), `seed ${seed}: ${reason} never came up`);
});

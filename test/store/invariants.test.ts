/** What holds whatever a caller forgets: the store asks the domain at every change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import { createLimits, type Limit, type Limits } from '../../src/lib/limits.ts';
import {
  createMembership,
  removeMembership,
  updateMemberRole,
} from '../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug, retireOrganization } from '../../src/store/organizations/organizations.ts';
import { updateLifecycle, updateStaffKeys } from '../../src/store/people/people.ts';
import { createSshKey, listSshKeys } from '../../src/store/people/ssh-keys.ts';
import { createSharedLimits, deleteExpiredCounts } from '../../src/store/servers/limit-counts.ts';
import { physics } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, userId } from '../support/store.ts';

test('the last owner stays: no change of a role or a membership takes them away', async () => {
  await using store = await openTestStore({ ...physics, clusters: [] });
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const ada = await userId(store, 'ada@physics.example');
  const bob = await userId(store, 'bob@physics.example');
  const last = /This is the last owner/;
  await assert.rejects(
    store.write((tx) => removeMembership(tx, { organizationId, userId: ada })),
    last,
  );
  await assert.rejects(
    store.write((tx) => updateMemberRole(tx, { organizationId, userId: ada, role: 'admin' })),
    last,
  );
  await store.write((tx) => updateMemberRole(tx, { organizationId, userId: bob, role: 'owner' }));
  await store.write((tx) => removeMembership(tx, { organizationId, userId: ada }));
  await assert.rejects(
    store.write((tx) => removeMembership(tx, { organizationId, userId: bob })),
    last,
  );
  await store.write((tx) => retireOrganization(tx, organizationId));
  await store.write((tx) => removeMembership(tx, { organizationId, userId: bob }));
});

test('a username is one person’s for good, and only once', async () => {
  await using store = await openTestStore(physics);
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const root = await userId(store, 'root@physics.example');
  const join = (username: string) =>
    store.write((tx) =>
      createMembership(tx, {
        organizationId,
        userId: root,
        email: 'root@physics.example',
        role: 'member',
        username,
      }),
    );
  await assert.rejects(join('ada'), /is, or was, another person's or a team's here/);
  await assert.rejects(join('Root!'), /cannot be a username/);
  await join('superuser');
});

test('the last operator stays: neither without the key nor deactivated', async () => {
  await using store = await openTestStore(physics);
  const root = await userId(store, 'root@physics.example');
  const last = /This is the last person with staff\.operate/;
  await assert.rejects(
    store.write((tx) => updateStaffKeys(tx, { userId: root, keys: [] })),
    last,
  );
  await assert.rejects(
    store.write((tx) => updateLifecycle(tx, { userId: root, state: 'deactivated' })),
    last,
  );
});

test('a write has the time of its transaction', async () => {
  await using store = await openTestStore(physics);
  const ada = await userId(store, 'ada@physics.example');
  const key = parseSshPublicKey(newPublicKey());
  const now = Date.parse('2030-01-01T00:00:00.000Z');
  await store.write((tx) => createSshKey({ ...tx, now }, { userId: ada, key, commandId: 'c' }));
  const [made] = await listSshKeys(store.read, ada);
  assert.equal(made?.createdAt, '2030-01-01T00:00:00.000Z');
});

const backOff: Limit = {
  name: 'wrong passwords',
  backOff: { free: 2, firstMs: 1_000, mostMs: 4_000, forgetMs: 60_000 },
};
const rate: Limit = { name: 'codes', rate: { burst: 2, everyMs: 1_000 } };

/** Steps on both kinds: the key, what is done, and how long it takes. */
const steps: [key: string, act: 'use' | 'undo' | 'clear', ms: number][] = [
  ['ada', 'use', 0],
  ['ada', 'use', 0],
  ['bob', 'use', 0],
  ['ada', 'use', 400],
  ['ada', 'undo', 0],
  ['ada', 'use', 2_000],
  ['ada', 'use', 5_000],
  ['ada', 'clear', 0],
  ['ada', 'use', 0],
];

async function walk(
  limits: Limits,
  advance: (ms: number) => void,
): Promise<{ backOff: number; rate: number }[]> {
  const waits: { backOff: number; rate: number }[] = [];
  for (const [key, act, ms] of steps) {
    const counted = { backOff: { limit: backOff, key }, rate: { limit: rate, key } };
    waits.push(
      await limits.change(counted, (counts) => {
        const before = { backOff: counts.backOff.waitMs(), rate: counts.rate.waitMs() };
        for (const count of Object.values(counts)) count[act]();
        return before;
      }),
    );
    advance(ms);
  }
  return waits;
}

test('waits are the same in memory and in the database', async () => {
  let at = 1_700_000_000_000;
  await using opened = await openTestStore(undefined, () => at);
  const advance = (ms: number) => {
    at += ms;
  };
  const inMemory = await walk(
    createLimits(() => at),
    advance,
  );
  const shared = await walk(createSharedLimits(opened.store), advance);
  assert.deepEqual(shared, inMemory);
});

test('two servers that count together let no more through than one, however many tries come at once', async () => {
  const at = 1_700_000_000_000;
  await using opened = await openTestStore(undefined, () => at);
  const servers = [createSharedLimits(opened.store), createSharedLimits(opened.store)];
  const tries = Array.from({ length: 20 }, (_, index) =>
    servers[index % 2]?.change({ guess: { limit: rate, key: '192.0.2.1' } }, ({ guess }) => {
      if (guess.waitMs() > 0) return 'refused';
      guess.use();
      return 'let through';
    }),
  );
  const outcomes = await Promise.all(tries);
  assert.equal(outcomes.filter((outcome) => outcome === 'let through').length, 2);
});

test('a clock that was ahead makes no one wait for longer than the limit would', async () => {
  let at = 1_700_000_000_000;
  await using opened = await openTestStore(undefined, () => at);
  const limits = createSharedLimits(opened.store);
  const counted = { backOff: { limit: backOff, key: 'ada' }, rate: { limit: rate, key: 'ada' } };
  for (let tries = 0; tries < 9; tries += 1)
    await limits.change(counted, (counts) => {
      for (const count of Object.values(counts)) count.use();
    });
  at -= 3_600_000;
  const waits = await limits.change(counted, (counts) => [counts.backOff.waitMs(), counts.rate.waitMs()]);
  assert.ok((waits[0] ?? 0) <= 4_000 && (waits[1] ?? 0) <= 2_000, String(waits));
});

test('keys are stored as hashes, and counts that hold no one back any more are removed', async () => {
  let at = 1_700_000_000_000;
  await using store = await openTestStore(undefined, () => at);
  const limits = createSharedLimits(store);
  const counted = { backOff: { limit: backOff, key: 'ada@physics.example' } };
  await limits.change(counted, (counts) => counts.backOff.use());
  const rows = () => store.read.selectFrom('limit_counts').selectAll().execute();
  assert.doesNotMatch(JSON.stringify(await rows()), /ada|physics/);
  assert.equal(await store.write((tx) => deleteExpiredCounts(tx, 10)), 0);
  at += 60_000;
  assert.equal(await store.write((tx) => deleteExpiredCounts(tx, 10)), 1);
  assert.deepEqual(await rows(), []);
});

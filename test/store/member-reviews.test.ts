/** Reviews of members’ access, and the history of what members held. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Role } from '../../src/domain/access/permission.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { DomainError } from '../../src/domain/error.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startMemberReviews } from '../../src/service/compose/permission-ends.ts';
import { followGroups } from '../../src/store/audit/follow-groups.ts';
import { reviewMembers } from '../../src/store/audit/member-reviews.ts';
import { findRow, listRows } from '../../src/store/engine/rows.ts';
import { toTime } from '../../src/store/engine/time.ts';
import { applyGroups } from '../../src/store/organizations/apply-groups.ts';
import {
  createGrant,
  listAllGrantsAt,
  listAllLiveGrants,
  revokeGrant,
} from '../../src/store/organizations/grants.ts';
import { deleteOldHistory, findHistoryStart, listMembersAt } from '../../src/store/organizations/holdings.ts';
import {
  createMembership,
  removeByHand,
  removeMembership,
  updateMemberPermissions,
  updateMemberRole,
  updateUsername,
} from '../../src/store/organizations/membership-changes.ts';
import { listAllGrantedPermissions, listMembers } from '../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { becomes, physics } from '../support/app.ts';
import { mulberry } from '../support/random.ts';
import { isFull, isOnFile, openTestStore, type TestStore, userId } from '../support/store.ts';

const day = 86_400_000;
const signal = new AbortController().signal;
const rule: GroupRule = {
  group: 'gpu',
  organization: 'physics',
  role: 'member',
  permissions: ['clusters.kubernetes'],
};

/** An organization with bob (by hand), eve (nothing), and a clock of its own. */
async function open(lab: Lab = physics) {
  const clock = { now: Date.now() };
  const opened = await openTestStore(lab, () => clock.now);
  const { store } = opened;
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const member = async (name: string) => ({
    organizationId,
    userId: await userId(store, `${name}@physics.example`),
  });
  return {
    store,
    clock,
    member,
    review: () => reviewMembers(store, 6, { now: clock.now, stopping: signal }),
    /** Ends by key; null: none. */
    async ends(name: string) {
      const all = await listAllGrantedPermissions(store.read, organizationId, clock.now);
      const own = all.get((await member(name)).userId) ?? [];
      return Object.fromEntries(own.map(({ key, expiresAt }) => [key, expiresAt]));
    },
    async reviewFrom(name: string) {
      const row = await findRow(store.read, 'memberships', { user_id: (await member(name)).userId });
      return row?.review_from;
    },
    async permit(name: string, permissions: Record<string, string | null>) {
      const who = await member(name);
      const granted = Object.entries(permissions).map(([key, expiresAt]) => ({ key, expiresAt }));
      await store.write((tx) => updateMemberPermissions(tx, { ...who, permissions: granted }));
    },
    entries: () => listRows(store.read, 'audit_entries', { operation: 'endReviewedAccess' }, 'seq'),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

const at = (ms: number) => new Date(ms).toISOString();
const forGood = { 'clusters.read': null, 'clusters.ssh': null };

test('what a member holds for good gets an end after the months, 30 days ahead, and never another one', async () => {
  await using lab = await open();
  assert.equal(await lab.review(), 0);
  lab.clock.now += 182 * day;
  assert.equal(await lab.review(), 0);
  assert.deepEqual(await lab.ends('bob'), forGood);
  lab.clock.now += day;
  const end = at(lab.clock.now + 30 * day);
  assert.equal(await lab.review(), 1);
  const limited = { 'clusters.read': end, 'clusters.ssh': end };
  assert.deepEqual(await lab.ends('bob'), limited);
  for (const _ of ['a restart', 'another one']) {
    lab.clock.now += day;
    assert.equal(await lab.review(), 0);
    assert.deepEqual(await lab.ends('bob'), limited);
  }
  const [entry, ...more] = await lab.entries();
  assert.deepEqual(more, []);
  assert.deepEqual(
    [entry?.operation, entry?.actor_user_id, entry?.subject_user_id, entry?.reason],
    ['endReviewedAccess', systemUserId, (await lab.member('bob')).userId, 'to be kept by an owner'],
  );
  assert.match(entry?.details ?? '', /^clusters\.read until \S+ \S+ UTC, clusters\.ssh until \S+ \S+ UTC$/);
  lab.clock.now += 29 * day;
  assert.deepEqual(await lab.ends('bob'), {});
  assert.equal(await lab.review(), 0);
});

test('however old a membership is, an end is 30 days ahead of the round that gives it', async () => {
  await using lab = await open();
  lab.clock.now += 4_000 * day;
  assert.equal(await lab.review(), 1);
  const end = at(lab.clock.now + 30 * day);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.read': end, 'clusters.ssh': end });
});

test('what was kept is reviewed after the months; an end of its own stays', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 29 * day;
  const own = at(lab.clock.now + 220 * day);
  await lab.permit('bob', { 'clusters.read': null, 'clusters.ssh': own });
  lab.clock.now += 182 * day;
  assert.equal(await lab.review(), 0);
  lab.clock.now += day;
  assert.equal(await lab.review(), 1);
  const end = at(lab.clock.now + 30 * day);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.read': end, 'clusters.ssh': own });
});

test('of what is kept in part, the rest is still to be kept, and the months count from its end', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  const end = at(lab.clock.now + 30 * day);
  await lab.permit('bob', { 'clusters.read': null, 'clusters.ssh': end });
  assert.equal(await lab.reviewFrom('bob'), end);
  lab.clock.now += 212 * day;
  assert.equal(await lab.review(), 0);
  lab.clock.now += day;
  assert.equal(await lab.review(), 1);
});

test('what was given anew after an end that stood, or by a file, is reviewed after the months', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 300 * day;
  assert.deepEqual(await lab.ends('bob'), {});
  assert.equal(await lab.review(), 0);
  const bob = await lab.member('bob');
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  await lab.store.write((tx) => updateMemberPermissions(tx, { ...bob, permissions }, { isFile: true }));
  assert.equal(await lab.review(), 0);
  lab.clock.now += 183 * day;
  assert.equal(await lab.review(), 1);
});

test('a clock that is set back gives no end and moves none', async () => {
  await using lab = await open();
  lab.clock.now += 230 * day;
  await lab.review();
  const limited = await lab.ends('bob');
  lab.clock.now -= 100 * day;
  assert.equal(await lab.review(), 0);
  assert.deepEqual(await lab.ends('bob'), limited);
  await lab.permit('bob', forGood);
  assert.equal(await lab.review(), 0);
});

test('what rules give has no end, also where people gave the same; what people gave besides gets one', async () => {
  await using lab = await open({
    ...physics,
    users: [...(physics.users ?? []), { email: 'zoe@physics.example' }],
  });
  const { store, clock } = lab;
  const follow = async (name: string, groups: string[]) => {
    const { userId: id } = await lab.member(name);
    const person = { userId: id, email: `${name}@physics.example` };
    await store.write((tx) => followGroups(tx, person, [rule], groups));
  };
  const bob = await lab.member('bob');
  const permissions = ['clusters.kubernetes', 'clusters.ssh'].map((key) => ({ key, expiresAt: null }));
  await store.write((tx) => updateMemberPermissions(tx, { ...bob, permissions }));
  await follow('bob', ['gpu']);
  await follow('zoe', ['gpu']);
  clock.now += 200 * day;
  assert.equal(await lab.review(), 1);
  const end = at(clock.now + 30 * day);
  assert.deepEqual(await lab.ends('zoe'), { 'clusters.kubernetes': null });
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': null, 'clusters.ssh': end });
  await follow('bob', []);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': end, 'clusters.ssh': end });
  await follow('bob', ['gpu']);
  await lab.permit('bob', { 'clusters.kubernetes': null, 'clusters.ssh': null });
  await follow('bob', []);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': null, 'clusters.ssh': null });
});

test('who leaves and comes back, or has another role meanwhile, is reviewed after the months; owners and admins are not', async () => {
  await using lab = await open();
  const { store, clock } = lab;
  const bob = await lab.member('bob');
  const again = { ...bob, email: 'bob@physics.example', role: 'member' as const };
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  clock.now += 200 * day;
  await store.write((tx) => removeByHand(tx, bob));
  assert.equal(await lab.review(), 0);
  await store.write((tx) => createMembership(tx, { ...again, permissions }));
  assert.equal(await lab.review(), 0);
  clock.now += 190 * day;
  await store.write((tx) => updateMemberRole(tx, { ...bob, role: 'admin' }));
  assert.equal(await lab.review(), 0);
  await store.write((tx) => updateMemberRole(tx, { ...bob, role: 'member' }));
  await lab.permit('bob', { 'clusters.ssh': null });
  assert.equal(await lab.review(), 0);
  clock.now += 183 * day;
  assert.equal(await lab.review(), 1);
});

test('a round that fails leaves nothing half done, and the next one does it', async () => {
  const people = Array.from({ length: 150 }, (_, index) => ({
    email: `p${index}@physics.example`,
    role: 'member' as const,
    permissions: ['clusters.ssh' as const],
  }));
  const [organization, ...others] = physics.organizations ?? [];
  if (!organization) throw new Error('unreachable');
  const members = [...(organization.members ?? []), ...people];
  await using lab = await open({ ...physics, organizations: [{ ...organization, members }, ...others] });
  const { store, clock } = lab;
  clock.now += 200 * day;
  let writes = 0;
  const failing: typeof store = {
    ...store,
    write: (body, options) =>
      store.write(async (tx) => {
        const result = await body(tx);
        writes += 1;
        if (writes === 2) throw new Error('the power is gone');
        return result;
      }, options),
  };
  const half = Object.defineProperty(failing, 'read', { get: () => store.read });
  await assert.rejects(reviewMembers(half, 6, { now: clock.now, stopping: signal }), /the power is gone/);
  assert.equal((await lab.entries()).length, 100);
  clock.now += day;
  assert.equal(await lab.review(), 51);
  assert.equal((await lab.entries()).length, 151);
});

test('the service reviews at its start, and says what it did', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  const stop = startMemberReviews({ store: lab.store, months: 6, log, now: () => lab.clock.now });
  await becomes(() => lines.join('').includes('access.reviewed'), true);
  await stop();
  const { event, ended } = JSON.parse(lines[0] ?? '');
  assert.deepEqual([event, ended], ['access.reviewed', 1]);
});

const cluster = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const names = ['a', 'b', 'c', 'd', 'e'];
const lab: Lab = {
  users: names.map((name) => ({ email: `${name}@x.example`, name })),
  organizations: [
    { slug: 'x', name: 'X', members: [{ email: 'owner@x.example', role: 'owner', username: 'boss' }] },
  ],
  clusters: [
    {
      ...{ name: 'k', id: cluster, organization: 'x', scheduler: 'kubernetes' },
      simulated: { computeNodes: 1, gpusPerNode: 1 },
    },
  ],
};
const keys = ['clusters.read', 'clusters.ssh', 'clusters.kubernetes', 'members.manage'];
const rules: GroupRule[] = [
  { group: 'see', organization: 'x', role: 'member', permissions: ['clusters.read'] },
  { group: 'use', organization: 'x', role: 'member', permissions: ['clusters.read', 'clusters.ssh'] },
  { group: 'run', organization: 'x', role: 'admin', permissions: [] },
];
/** `ROUNDS=10000` for a long run. */
const rounds = Number(process.env['ROUNDS'] ?? (isOnFile && isFull ? 600 : 100));

/** All that the present says of an organization's people and grants. */
async function present({ store }: TestStore, organizationId: string, now: number) {
  const granted = await listAllGrantedPermissions(store.read, organizationId, now);
  const members = await listMembers(store.read, organizationId);
  const shown = members.map(({ userId, role, username, createdAt }) => ({
    ...{ userId, role, username: username.username, memberSince: createdAt },
    granted: role === 'member' ? (granted.get(userId) ?? []) : [],
  }));
  const grants = await listAllLiveGrants(store.read, now);
  return { members: shown.sort((a, b) => (a.userId < b.userId ? -1 : 1)), grants };
}

async function past({ store }: TestStore, organizationId: string, at: number) {
  const members = await listMembersAt(store.read, organizationId, toTime(at));
  return {
    members: members.map(({ email: _, byHand: __, byRules: ___, keptSince: ____, ...member }) => member),
    grants: await listAllGrantsAt(store.read, toTime(at)),
  };
}

test('who had access at any time is what was so then', async (t) => {
  const seed = Number(process.env['SEED'] ?? (isOnFile ? Math.floor(Math.random() * 2 ** 31) : 7));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  const random = mulberry(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const clock = { now: Date.now() + 60_000 };
  await using store = await openTestStore(lab, () => clock.now);
  const { id: organizationId = '' } =
    (await store.read.selectFrom('organizations').select('id').executeTakeFirst()) ?? {};
  const ids = await Promise.all(names.map((name) => userId(store, `${name}@x.example`)));

  const permissions = () =>
    keys
      .filter(() => random() < 0.4)
      .map((key) => ({
        key,
        expiresAt: random() < 0.5 ? null : toTime(clock.now + Math.ceil(random() * 50_000)),
      }));
  const step = async (id: string) => {
    const member = { organizationId, userId: id };
    const email = `${names[ids.indexOf(id)]}@x.example`;
    const isMember = (await listMembers(store.read, organizationId)).some((one) => one.userId === id);
    const change = store.write(async (tx) => {
      const grants = await listAllLiveGrants(tx.db, tx.now);
      const kind = random();
      const groups = ['see', 'use', 'run'].filter(() => random() < 0.3);
      if (kind < 0.1) await applyGroups(tx, { userId: id, email }, rules, groups);
      else if (kind < 0.15)
        await createGrant(tx, {
          ...{ clusterId: cluster, userId: id, relation: 'kubernetes.viewer', scope: null, roleId: null },
          ...{ expiresAt: random() < 0.5 ? null : toTime(tx.now + 20_000), grantedBy: ids[0] ?? '' },
        });
      else if (kind < 0.3 && grants.length > 0) await revokeGrant(tx, pick(grants).id);
      else if (!isMember)
        await createMembership(tx, { ...member, email, role: 'member', permissions: permissions() });
      else if (kind < 0.4) await removeMembership(tx, member);
      else if (kind < 0.5) await removeByHand(tx, member);
      else if (kind < 0.65) await updateMemberRole(tx, { ...member, role: pick<Role>(['admin', 'member']) });
      else if (kind < 0.75)
        await updateUsername(tx, { ...member, username: `n${Math.floor(random() * 1e6)}` });
      else {
        const isFile = random() < 0.5;
        await updateMemberPermissions(tx, { ...member, permissions: permissions() }, { isFile });
      }
    });
    // What a rule gives is not taken away by hand.
    await change.catch((error: unknown) => assert.ok(error instanceof DomainError, String(error)));
  };

  const seen: { at: number; what: Awaited<ReturnType<typeof present>> }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Several changes of one millisecond are one.
    const changes = 1 + Math.floor(random() * 3);
    for (let left = changes; left > 0; left -= 1) await step(pick(ids));
    seen.push({ at: clock.now, what: await present(store, organizationId, clock.now) });
    clock.now += 1 + Math.floor(random() * 10_000);
  }
  for (const { at, what } of seen) assert.deepEqual(await past(store, organizationId, at), what);

  // What is old is forgotten, and said to be so.
  const middle = seen[Math.floor(rounds / 2)]?.at ?? 0;
  await store.write((tx) => deleteOldHistory(tx, toTime(middle)));
  assert.equal(await findHistoryStart(store.read), toTime(middle));
  for (const { at, what } of seen)
    if (at >= middle) assert.deepEqual(await past(store, organizationId, at), what);
});

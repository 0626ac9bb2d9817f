/** Reviews of members' access: what gets an end and what does not, and what keeps it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startMemberReviews } from '../../src/service/compose/permission-ends.ts';
import { followGroups } from '../../src/store/audit/follow-groups.ts';
import { reviewMembers } from '../../src/store/audit/member-reviews.ts';
import { findRow, listRows } from '../../src/store/engine/rows.ts';
import {
  createMembership,
  removeByHand,
  updateMemberPermissions,
  updateMemberRole,
} from '../../src/store/organizations/membership-changes.ts';
import { listAllGrantedPermissions } from '../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { becomes, physics } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';

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

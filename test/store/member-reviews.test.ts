/** Reviews of members' access: who is asked about, what gets an end and what does not, and what a confirmation takes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startMemberReviews } from '../../src/service/compose/member-reviews.ts';
import { followGroups } from '../../src/store/audit/follow-groups.ts';
import { confirmMember, reviewMembers } from '../../src/store/audit/member-reviews.ts';
import { addByHand, removeByHand } from '../../src/store/organizations/by-hand.ts';
import {
  updateMemberPermissions,
  updateMemberRole,
} from '../../src/store/organizations/membership-changes.ts';
import { listAllGrantedPermissions } from '../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { allLeases } from '../../src/store/servers/leases.ts';
import { eventually, physics } from '../support/app.ts';
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
    review: (months: number | 'off' = 6) =>
      reviewMembers(store, months === 'off' ? undefined : months, { now: clock.now, stopping: signal }),
    /** Ends by key; null: none. */
    async ends(name: string) {
      const all = await listAllGrantedPermissions(store.read, organizationId, clock.now);
      const own = all.get((await member(name)).userId) ?? [];
      return Object.fromEntries(own.map(({ key, expiresAt }) => [key, expiresAt]));
    },
    async state(name: string) {
      return store.read
        .selectFrom('memberships')
        .select(['confirmed_at', 'review_asked_at', 'review_ends_at'])
        .where('user_id', '=', (await member(name)).userId)
        .executeTakeFirstOrThrow();
    },
    async confirm(name: string) {
      const who = await member(name);
      return store.write((tx) => confirmMember(tx, who, { actorUserId: systemUserId, reason: 'reviewed' }));
    },
    entries: () =>
      store.read
        .selectFrom('audit_entries')
        .select(['operation', 'actor_user_id', 'subject_user_id', 'reason', 'details'])
        .where('operation', 'in', ['endUnconfirmedAccess', 'confirmAccess.member'])
        .orderBy('seq')
        .execute(),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

const nothing = { asked: 0, ended: 0 };
const at = (ms: number) => new Date(ms).toISOString();
const forGood = { 'clusters.read': null, 'clusters.ssh': null };

test('a member is asked about after the months, gets an end 30 days later, 30 days ahead, and never another one', async () => {
  await using lab = await open();
  assert.deepEqual(await lab.review(), nothing);
  lab.clock.now += 182 * day;
  assert.deepEqual(await lab.review(), nothing);
  lab.clock.now += day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  assert.deepEqual(await lab.review(), nothing, 'a restart');
  lab.clock.now += 29 * day;
  assert.deepEqual(await lab.review(), nothing);
  assert.deepEqual(await lab.ends('bob'), forGood);
  lab.clock.now += day;
  const end = at(lab.clock.now + 30 * day);
  assert.deepEqual(await lab.review(), { asked: 0, ended: 1 });
  const limited = { 'clusters.read': end, 'clusters.ssh': end };
  assert.deepEqual(await lab.ends('bob'), limited);
  for (const _ of ['a restart', 'another one']) {
    lab.clock.now += day;
    assert.deepEqual(await lab.review(), nothing);
    assert.deepEqual(await lab.ends('bob'), limited);
  }
  const [entry, ...more] = await lab.entries();
  assert.deepEqual(more, []);
  assert.deepEqual(
    [entry?.operation, entry?.actor_user_id, entry?.subject_user_id, entry?.reason],
    ['endUnconfirmedAccess', systemUserId, (await lab.member('bob')).userId, 'not confirmed by an owner'],
  );
  assert.match(entry?.details ?? '', /^clusters\.read until \S+ \S+ UTC, clusters\.ssh until \S+ \S+ UTC$/);
  lab.clock.now += 29 * day;
  assert.deepEqual(await lab.ends('bob'), {});
  assert.deepEqual(await lab.review(), nothing);
});

test('the days count from the first round with the setting, however old a membership is; off, nothing happens', async () => {
  await using lab = await open();
  lab.clock.now += 4_000 * day;
  assert.deepEqual(await lab.review('off'), nothing);
  assert.equal((await lab.state('bob')).review_asked_at, null);
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  lab.clock.now += 10 * day;
  assert.deepEqual(await lab.review('off'), nothing);
  assert.equal((await lab.state('bob')).review_asked_at, null, 'nobody is asked any more');
  lab.clock.now += 100 * day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  assert.deepEqual(await lab.ends('bob'), forGood);
});

test('off after an end was given, the end stays and can be taken back', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 30 * day;
  await lab.review();
  const limited = await lab.ends('bob');
  assert.deepEqual(await lab.review('off'), nothing);
  assert.deepEqual(await lab.ends('bob'), limited);
  assert.equal(await lab.confirm('bob'), true);
  assert.deepEqual(await lab.ends('bob'), forGood);
});

test('confirmed in time, there is no end; confirmed late, the end that the review gave is taken back, and only that', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 29 * day;
  assert.equal(await lab.confirm('bob'), true);
  const confirmedAt = at(lab.clock.now);
  assert.deepEqual(await lab.state('bob'), {
    confirmed_at: confirmedAt,
    review_asked_at: null,
    review_ends_at: null,
  });
  lab.clock.now += 180 * day;
  assert.deepEqual(await lab.review(), nothing);
  lab.clock.now += 5 * day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  const own = at(lab.clock.now + 40 * day);
  const permissions = [
    { key: 'clusters.read', expiresAt: null },
    { key: 'clusters.ssh', expiresAt: own },
  ];
  const bob = await lab.member('bob');
  await lab.store.write((tx) => updateMemberPermissions(tx, { ...bob, permissions }));
  lab.clock.now += 30 * day;
  assert.deepEqual(await lab.review(), { asked: 0, ended: 1 });
  const end = at(lab.clock.now + 30 * day);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.read': end, 'clusters.ssh': own });
  assert.equal(await lab.confirm('bob'), true);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.read': null, 'clusters.ssh': own });
  assert.deepEqual(
    (await lab.entries()).map(({ operation }) => operation),
    ['confirmAccess.member', 'endUnconfirmedAccess', 'confirmAccess.member'],
  );
});

test('confirmed after the end, what ended stays ended; what is given later is reviewed after the months', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 30 * day;
  await lab.review();
  lab.clock.now += 30 * day;
  assert.deepEqual(await lab.ends('bob'), {});
  assert.equal(await lab.confirm('bob'), true);
  assert.deepEqual(await lab.ends('bob'), {});
  const bob = await lab.member('bob');
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  await lab.store.write((tx) => updateMemberPermissions(tx, { ...bob, permissions }));
  assert.deepEqual(await lab.review(), nothing);
  lab.clock.now += 183 * day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
});

test('what was given anew after a missed review is reviewed after the months, though it was never confirmed', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 30 * day;
  await lab.review();
  lab.clock.now += 31 * day;
  const bob = await lab.member('bob');
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  await lab.store.write((tx) => updateMemberPermissions(tx, { ...bob, permissions }));
  assert.deepEqual(await lab.review(), nothing);
  lab.clock.now += 183 * day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  lab.clock.now += 30 * day;
  assert.deepEqual(await lab.review(), { asked: 0, ended: 1 });
});

test('a clock that is set back gives no end and moves none; one that was ahead has asked about no one', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  await lab.review();
  lab.clock.now += 30 * day;
  await lab.review();
  const limited = await lab.ends('bob');
  lab.clock.now -= 100 * day;
  assert.deepEqual(await lab.review(), nothing);
  assert.deepEqual(await lab.ends('bob'), limited);
  await lab.confirm('bob');

  lab.clock.now += 400 * day;
  await lab.review();
  lab.clock.now -= 100 * day;
  assert.deepEqual(await lab.review(), nothing);
  assert.equal((await lab.state('bob')).review_asked_at, null);
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  lab.clock.now += 29 * day;
  assert.deepEqual(await lab.review(), nothing);
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
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  clock.now += 30 * day;
  assert.deepEqual(await lab.review(), { asked: 0, ended: 1 });
  const end = at(clock.now + 30 * day);
  assert.deepEqual(await lab.ends('zoe'), { 'clusters.kubernetes': null });
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': null, 'clusters.ssh': end });
  await follow('bob', []);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': end, 'clusters.ssh': end });
  await follow('bob', ['gpu']);
  assert.equal(await lab.confirm('bob'), true);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': null, 'clusters.ssh': null });
  await follow('bob', []);
  assert.deepEqual(await lab.ends('bob'), { 'clusters.kubernetes': null, 'clusters.ssh': null });
});

test('who leaves and comes back, or has another role meanwhile, is asked about anew; owners and admins are not', async () => {
  await using lab = await open();
  const { store, clock } = lab;
  const bob = await lab.member('bob');
  const again = { ...bob, email: 'bob@physics.example', role: 'member' as const };
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  clock.now += 200 * day;
  await lab.review();
  await store.write((tx) => removeByHand(tx, bob));
  clock.now += 40 * day;
  assert.deepEqual(await lab.review(), nothing);
  await store.write((tx) => addByHand(tx, { ...again, permissions }));
  assert.deepEqual(await lab.review(), nothing);
  clock.now += 190 * day;
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
  await store.write((tx) => updateMemberRole(tx, { ...bob, role: 'admin' }));
  clock.now += 40 * day;
  assert.deepEqual(await lab.review(), nothing);
  assert.equal(await lab.confirm('bob'), false);
  assert.equal(await lab.confirm('ada'), false);
  await store.write(async (tx) => {
    await updateMemberRole(tx, { ...bob, role: 'member' });
    await updateMemberPermissions(tx, { ...bob, permissions });
  });
  assert.deepEqual(await lab.review(), { asked: 1, ended: 0 });
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
  assert.deepEqual(await lab.review(), { asked: 151, ended: 0 });
  clock.now += 30 * day;
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
  assert.deepEqual(await lab.review(), { asked: 0, ended: 51 });
  assert.equal((await lab.entries()).length, 151);
});

test('the service reviews at its start, and says what it did', async () => {
  await using lab = await open();
  lab.clock.now += 200 * day;
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  const leases = allLeases(lab.store);
  const stop = startMemberReviews({ leases, months: 6, log, now: () => lab.clock.now });
  await eventually(
    async () => lines.join(''),
    (text) => text.includes('access.reviewed'),
  );
  await stop();
  const { event, asked, ended } = JSON.parse(lines[0] ?? '');
  assert.deepEqual([event, asked, ended], ['access.reviewed', 1, 0]);
});

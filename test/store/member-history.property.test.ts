/** Who had access at a time: equal to what was read at that time, whatever happened since. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Role } from '../../src/domain/access/permission.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { DomainError } from '../../src/domain/error.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
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
import { mulberry } from '../support/random.ts';
import { isFull, isOnFile, openTestStore, type TestStore, userId } from '../support/store.ts';

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

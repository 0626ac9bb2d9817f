/** Parts of the store: rows, changes, ages of observations, and permissions that are granted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permissionCatalog } from '../../src/domain/access/permission.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { createClock } from '../../src/lib/clock.ts';
import { type Change, readChanges } from '../../src/store/engine/changes.ts';
import { createObservationAges, readObservation } from '../../src/store/engine/observation-ages.ts';
import {
  deleteRows,
  findRow,
  inCamelCase,
  insertRow,
  listRows,
  saveRow,
  updateRows,
} from '../../src/store/engine/rows.ts';
import { toTime } from '../../src/store/engine/time.ts';
import { applyGroups } from '../../src/store/organizations/apply-groups.ts';
import { createMembership } from '../../src/store/organizations/membership-changes.ts';
import { listAllGrantedPermissions } from '../../src/store/organizations/memberships.ts';
import { createOrganization } from '../../src/store/organizations/organizations.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { openTestStore } from '../support/store.ts';

const session = { entry: '{}', server_id: 'server_1', closing: null, presumed_seq: 1 };

test('a condition on null finds rows without the value, and one on a value those with it', async () => {
  await using store = await openTestStore();
  const found = await store.write(async ({ db }) => {
    await insertRow(db, 'open_sessions', { id: 'b', ...session });
    await insertRow(db, 'open_sessions', { id: 'a', ...session });
    await insertRow(db, 'open_sessions', { id: 'c', ...session, closing: 'bye' });
    await updateRows(db, 'open_sessions', { id: 'a', closing: null }, { presumed_seq: 7 });
    await updateRows(db, 'open_sessions', { id: 'c', closing: null }, { presumed_seq: 7 });
    const free = await listRows(db, 'open_sessions', { closing: null }, 'id');
    const held = await listRows(db, 'open_sessions', { closing: 'bye' }, 'id');
    await deleteRows(db, 'open_sessions', { closing: null });
    return [free, held, await listRows(db, 'open_sessions', {}, 'id')].map((rows) =>
      rows.map(({ id, presumed_seq }) => `${id} ${presumed_seq}`),
    );
  });
  assert.deepEqual(found, [['a 7', 'b 1'], ['c 1'], ['c 1']]);
});

test('a row that is saved takes the place of the one with its key, but for the columns that it leaves out', async () => {
  await using store = await openTestStore();
  const { closing: _, ...saved } = session;
  await store.write(async ({ db }) => {
    await insertRow(db, 'open_sessions', { id: 'a', ...session, closing: 'bye' });
    await saveRow(db, 'open_sessions', ['id'], { ...saved, id: 'a', presumed_seq: 2 });
    await saveRow(db, 'open_sessions', ['id'], { ...saved, id: 'b', presumed_seq: 3 });
  });
  const [a, b] = await Promise.all(['a', 'b'].map((id) => findRow(store.read, 'open_sessions', { id })));
  assert.deepEqual([a?.closing, a?.presumed_seq], ['bye', 2]);
  assert.deepEqual([b?.closing, b?.presumed_seq], [null, 3]);
});

test('columns are fields by their names in camel case', () => {
  assert.deepEqual(inCamelCase({ id: 'a', created_by_user_id: 'b', uid: 1 }), {
    id: 'a',
    createdByUserId: 'b',
    uid: 1,
  });
});

test('a server reads what another one announces', () => {
  const changes: Change[] = [
    { kind: 'person', userId: 'u' },
    { kind: 'person', userId: 'u', permissionEnd: '2030-01-01T00:00:00.000Z' },
    { kind: 'organization', organizationId: 'o' },
    { kind: 'cluster', clusterId: 'c' },
    { kind: 'report', clusterId: 'c' },
    { kind: 'browsers', userId: 'u' },
    { kind: 'sessions', userId: 'u' },
    { kind: 'requests', userId: 'u', organizationId: 'o' },
    { kind: 'service' },
    { kind: 'closing', sessionId: 's' },
    { kind: 'everything' },
    { kind: 'everything', wentBack: true },
    { kind: 'person', userId: 'u', commandId: 'command_1' },
  ];
  assert.deepEqual(readChanges(JSON.parse(JSON.stringify(changes))), changes);
});

test('what another version announces is read as far as it is known; what cannot be read counts as everything', () => {
  const all = [{ kind: 'everything' }];
  const told: [unknown, unknown][] = [
    [[{ kind: 'person', userId: 'u', more: 1 }], [{ kind: 'person', userId: 'u' }]],
    [[{ kind: 'room', roomId: 'r' }, { kind: 'service' }], [{ kind: 'service' }]],
    [[{ kind: 'room' }], []],
    [[{ kind: 'requests', userId: 'u' }], all],
    [[{ kind: 'person', userId: 7 }], all],
    [[{ kind: 'everything', wentBack: 'yes' }], all],
    [[{ kind: 'toString' }], []],
    [[{ userId: 'u' }], all],
    ...[null, 7, 'x', {}, [null], ['x'], [[]]].map((odd): [unknown, unknown] => [odd, all]),
  ];
  for (const [odd, expected] of told) assert.deepEqual(readChanges(odd), expected, JSON.stringify(odd));
});

const start = Date.parse('2030-01-01T12:00:00Z');

test('what this process recorded is as old as the time that passed, however the clock was set', () => {
  const host = { now: start, uptime: 0 };
  const ages = createObservationAges(createClock({ now: () => host.now, uptime: () => host.uptime }));
  const at = toTime(host.now);
  ages.recorded('alpha', 'slurm', at);
  host.uptime += 5_000;
  for (const jump of [0, 3_600_000, -3_600_000]) {
    host.now = start + jump;
    assert.equal(ages.msSince('alpha', 'slurm', at), 5_000);
  }
});

test('what another process recorded is as old as the clock says; a time yet to come is no recent one', () => {
  const ages = createObservationAges(createClock({ now: () => start }));
  for (const [ms, expected] of [
    [5_000, 5_000],
    [-60_000, -60_000],
    [-60_001, Number.POSITIVE_INFINITY],
  ] as const)
    assert.equal(ages.msSince('alpha', 'slurm', toTime(start - ms)), expected);
});

test('what another version reports of an observation is one, or nothing', () => {
  const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  const at = toTime(start);
  const right = { clusterId, side: 'slurm', at };
  assert.deepEqual(readObservation({ ...right, more: 1 }), right);
  for (const odd of [{ side: 'quantum' }, { clusterId: 'x' }, { at: 1 }])
    assert.throws(() => readObservation({ ...right, ...odd }), /is about no observation/);
});

test('the list of what everybody was granted is whole, wherever its pages end', async () => {
  await using store = await openTestStore();
  const keys = permissionCatalog.map(({ key }) => key).toSorted();
  const wanted = new Map<string, string[]>();
  const organizationId = await store.write(async (tx) => {
    const createdBy = await createPerson(tx, { email: 'ada@physics.example', displayName: 'Ada' });
    const id = await createOrganization(tx, {
      ...{ slug: 'physics', displayName: 'Physics', autoJoinDomains: [], createdBy },
    });
    for (let count = 0; count < 300; count += 1) {
      const email = `person-${count}@physics.example`;
      const userId = await createPerson(tx, { email, displayName: email });
      const held = keys.slice(0, count % (keys.length + 1));
      const permissions = held.map((key) => ({ key, expiresAt: null }));
      await createMembership(tx, {
        ...{ organizationId: id, userId, email, role: 'member', username: `person-${count}`, permissions },
      });
      // Rules give every other one of them the same, which is in the list once.
      const rule = { group: 'all', organization: 'physics', role: 'member', permissions: held } as GroupRule;
      if (count % 2 === 0) await applyGroups(tx, { userId, email }, [rule], ['all']);
      if (held.length > 0) wanted.set(userId, held);
    }
    return id;
  });
  const found = await listAllGrantedPermissions(store.read, organizationId, Date.now());
  const keysOf = [...found].map(([userId, held]) => [userId, held.map(({ key }) => key)] as const);
  assert.deepEqual(new Map(keysOf), wanted);
});

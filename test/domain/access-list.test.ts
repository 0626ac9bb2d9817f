import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AccessListState,
  type AccessListUser,
  accessListHash,
  accessListState,
  accessListUser,
  type Delivery,
  isRecent,
  isSameEntry,
  type Member,
  observationState,
} from '../../src/domain/access/manifest.ts';
import { fieldsOf } from '../support/fields.ts';

const ada: Member = {
  userId: 'user_1',
  username: 'ada',
  role: 'member',
  permissions: ['clusters.ssh'],
  shell: '/bin/bash',
  keySetGeneration: 3,
  keyFingerprints: ['SHA256:a'],
};

const usersOf = (...members: Member[]) =>
  members.map(accessListUser).filter((user): user is AccessListUser => user !== undefined);

test('every member holding clusters.ssh appears, with or without a key', () => {
  const users = usersOf(ada, { ...ada, userId: 'user_2', username: 'bob', keyFingerprints: [] });
  assert.deepEqual(fieldsOf(users, 'username', 'desiredLoginState'), [
    ['ada', 'ready'],
    ['bob', 'waiting_for_key'],
  ]);
});

const modes: [string, Partial<Member>, string | undefined][] = [
  ['clusters.ssh', {}, 'use'],
  ['clusters.ssh.admin', { permissions: ['clusters.ssh.admin'] }, 'admin'],
  ['clusters.configure', { permissions: ['clusters.configure'] }, 'admin'],
  ['both', { permissions: ['clusters.ssh', 'clusters.ssh.admin'] }, 'admin'],
  ['the role owner', { role: 'owner', permissions: [] }, 'admin'],
  ['the role admin', { role: 'admin', permissions: [] }, 'admin'],
  ['nothing', { permissions: [] }, undefined],
  ['clusters.read', { permissions: ['clusters.read'] }, undefined],
  ['clusters.kubernetes.admin', { permissions: ['clusters.kubernetes.admin'] }, undefined],
  ['members.manage', { permissions: ['members.manage'] }, undefined],
];
for (const [by, member, mode] of modes) {
  test(`a person who holds ${by} ${mode ? `is on the list in access mode ${mode}` : 'is not on the list'}`, () => {
    assert.equal(accessListUser({ ...ada, ...member })?.accessMode, mode);
  });
}

const differences: [string, Partial<Member>][] = [
  ['the username', { username: 'adb' }],
  ['the access mode', { permissions: ['clusters.ssh.admin'] }],
  ['the login state', { keyFingerprints: [] }],
  ['the key set generation', { keySetGeneration: 4 }],
  ['the shell', { shell: '/bin/zsh' }],
];
for (const [what, change] of differences) {
  test(`an entry, and the digest of its list, change with ${what}`, () => {
    const [before, after] = [usersOf(ada), usersOf({ ...ada, ...change })];
    assert.notEqual(accessListHash(after), accessListHash(before));
    assert.equal(isSameEntry(before[0], after[0]), false);
  });
}

test('neither changes with what is not on the list', () => {
  const before = usersOf(ada);
  const after = usersOf({ ...ada, permissions: ['clusters.read', 'clusters.ssh'] });
  assert.equal(accessListHash(after), accessListHash(before));
  assert.match(accessListHash(before), /^sha256:[0-9a-f]{64}$/);
  assert.equal(isSameEntry(before[0], after[0]), true);
});

test('having no entry is the same as having none, and not as having one', () => {
  assert.equal(isSameEntry(undefined, undefined), true);
  assert.equal(isSameEntry(accessListUser(ada), undefined), false);
  assert.equal(isSameEntry(undefined, accessListUser(ada)), false);
});

const now = 1_000_000_000;
const fresh = { observedAt: now - 1_000, manifestGeneration: 5, failure: null, waiting: [] as string[] };
const older = { ...fresh, manifestGeneration: 4 };
const old = { ...fresh, observedAt: now - 120_001 };
const delivered: Delivery = { generation: 5, observation: fresh, now };
const states: [string, Partial<Delivery>, AccessListState, ReturnType<typeof observationState>][] = [
  ['accepted, never reported', { observation: undefined }, 'accepted', null],
  ['accepted, not yet applied', { observation: older }, 'accepted', 'pending'],
  ['applied', {}, 'converged', 'converged'],
  ['without a host', { observation: { ...fresh, waiting: ['a1'] } }, 'accepted', 'pending'],
  ['applied, no recent report', { observation: old }, 'stale', 'converged'],
  ['reported as failed', { observation: { ...fresh, failure: 'no space' } }, 'failed', 'failed'],
];
for (const [what, change, state, observed] of states) {
  test(`a list that is ${what} is ${state}, its observation ${observed}`, () => {
    assert.equal(accessListState({ ...delivered, ...change }), state);
    assert.equal(observationState({ ...delivered, ...change }), observed);
  });
}

test('a report is recent for two minutes, to the millisecond', () => {
  assert.equal(isRecent(now - 120_000, now), true);
  assert.equal(isRecent(now - 120_001, now), false);
});

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
import { type Silence, waitingFor, waitingText, withSilence } from '../../src/domain/clusters/cluster.ts';
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

const first = '2030-01-01T00:00:00.000Z';
const later = '2030-01-01T00:01:00.000Z';
const host = (name: string, listVersion?: number) => ({
  host: name,
  ...(listVersion === undefined ? {} : { listVersion }),
  message: 'it does not answer',
});

test('a host waits since the report that first named it, and anew after one that did not', () => {
  const one = withSilence<Silence>({ waiting: [host('a1', 3)] }, undefined, first);
  assert.deepEqual(one.waiting, [{ ...host('a1', 3), since: first }]);
  const two = withSilence<Silence>(
    { waiting: [host('a1', 3), host('a2')] },
    { report: one, at: first },
    later,
  );
  assert.deepEqual(fieldsOf(two.waiting, 'since'), [first, later]);
  const three = withSilence<Silence>({ waiting: [host('a2')] }, { report: two, at: later }, later);
  const four = withSilence<Silence>({ waiting: [host('a1')] }, { report: three, at: later }, later);
  assert.deepEqual(four.waiting?.[0]?.since, later);
});

test('a silent controller last answered in the last report that it had a part in', () => {
  const one = withSilence<Silence>({ silent: 'controller' }, { report: {}, at: first }, later);
  assert.equal(one.controllerHeardAt, first);
  const two = withSilence<Silence>({ silent: 'all' }, { report: one, at: later }, later);
  assert.equal(two.controllerHeardAt, first);
  assert.equal(withSilence<Silence>({}, { report: two, at: later }, later).controllerHeardAt, undefined);
});

test('a change waits for hosts with an older version of the list, or an unknown one', () => {
  const waiting = [host('a1'), host('a2', 3), host('a3', 4)];
  const names = (version: number) => waitingFor(version, { waiting }).map((one) => one.host);
  assert.deepEqual([names(5), names(4), names(1), names(0)], [['a1', 'a2', 'a3'], ['a1', 'a2'], ['a1'], []]);
  assert.deepEqual(waitingFor(4, {}), []);
});

test('hosts that wait are named in words, the first of many', () => {
  assert.equal(waitingText([]), undefined);
  assert.equal(
    waitingText([{ ...host('a1'), since: first }]),
    `Hosts that have not confirmed it: a1 since ${first} (it does not answer).`,
  );
  const many = Array.from({ length: 7 }, (_, index) => ({ ...host(`a${index}`), message: `fault ${index}` }));
  assert.match(waitingText(many) ?? '', /a4 \(fault 4\), and 2 more\.$/);
  const alike = [...many, ...many.map((one) => ({ ...one, message: 'fault 0' }))];
  assert.match(waitingText(alike) ?? '', /: a0 and 7 more \(fault 0\), a1 .*, and 2 more\.$/);
});

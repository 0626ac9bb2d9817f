/** SSH sessions of several servers in one table: whose they are, who closes them, and what becomes of those of a server that is gone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SshSession } from '../../src/domain/access/ssh-session.ts';
import { entryOf } from '../../src/service/compose/session-records.ts';
import {
  appendSessionEntries,
  closeLostSessions,
  countOpenSessions,
  forgetPresumed,
  listClosings,
  listServersWithSessions,
  listSessionsElsewhere,
  presumeSessionsClosed,
  reopenSessions,
  requestClosing,
} from '../../src/store/audit/open-sessions.ts';
import { listPastSessions } from '../../src/store/audit/past-sessions.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { enterServer } from '../../src/store/servers/servers.ts';
import { alpha, physics } from '../support/app.ts';
import { everyKind, openTestStore, slurmReport, userId } from '../support/store.ts';

const at = Date.parse('2030-01-01T00:00:00.000Z');
const uses = { commands: [], commandCount: 0, forwards: [], forwardCount: 0, shells: 1, files: 0 };

/** What a store is to a server of that name; several of them share what is stored. */
function asServer(store: Store, id: string): Store {
  const server = { ...store.server, id, isAlone: false };
  return {
    ...store,
    server,
    write: (body, options) => store.write((tx) => body({ ...tx, server }), options),
  };
}

const sessionOf = (userId: string, id: string): SshSession => ({
  ...{ id, loginName: `${alpha}.bob`, clusterId: alpha, userId, username: 'bob', keyId: 'ssh_key_1' },
  ...{ fingerprint: 'SHA256:x', remoteAddress: '192.0.2.7', loginNode: '127.0.0.1:22' },
  ...{ openedAt: new Date(at).toISOString(), channels: 0, bytesUp: 0, bytesDown: 0 },
});

async function openTwoServers() {
  const opened = await openTestStore(physics, () => at);
  const bob = await userId(opened.store, 'bob@physics.example');
  const session = (id: string) => sessionOf(bob, id);
  const open = (store: Store, id: string) =>
    appendSessionEntries(store, [entryOf({ kind: 'opened', at, session: session(id) })]);
  const close = (store: Store, id: string, reason: string) =>
    appendSessionEntries(store, [entryOf({ kind: 'closed', at, session: session(id), reason, uses })]);
  const trail = async () => {
    const rows = await listRows(opened.store.read, 'audit_entries', {}, 'seq');
    const own = rows.filter(({ operation }) => operation.startsWith('ssh.session.'));
    return own.map(({ operation, target, reason }) => `${operation.slice(12)} ${target}: ${reason}`);
  };
  const past = async () =>
    (await listPastSessions(opened.store.read, {}, { limit: 10 })).map(
      ({ id, reason }) => `${id}: ${reason}`,
    );
  const { store } = opened;
  return {
    ...{ store, open, close, trail, past },
    ...{ a: asServer(store, 'server_a'), b: asServer(store, 'server_b') },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('each server sees what the others have, and is asked to close what is its own', async () => {
  await using two = await openTwoServers();
  const { a, b } = two;
  await two.open(a, 'one');
  await two.open(b, 'two');
  const elsewhere = async (store: Store) =>
    (await listSessionsElsewhere(store.read, store.server.id)).map(({ id }) => id);
  assert.deepEqual([await elsewhere(a), await elsewhere(b)], [['two'], ['one']]);
  assert.deepEqual((await listServersWithSessions(a.read)).sort(), ['server_a', 'server_b']);
  assert.equal(await countOpenSessions(a.read, alpha), 2);
  const changes: unknown[] = [];
  two.store.onChange(everyKind, (some) => changes.push(...some));
  await a.write((tx) => requestClosing(tx, { id: 'two', text: 'Please leave.' }));
  assert.deepEqual(changes, [{ kind: 'closing', sessionId: 'two' }]);
  assert.deepEqual(await listClosings(a.read, 'server_a'), []);
  assert.deepEqual(await listClosings(b.read, 'server_b'), [{ id: 'two', text: 'Please leave.' }]);
  await two.close(b, 'two', 'closed by an operator');
  assert.deepEqual(await listClosings(b.read, 'server_b'), []);
  assert.deepEqual(await two.past(), ['two: closed by an operator']);
});

test('sessions of a server that is gone are closed once in the record, whichever server sees it first', async () => {
  await using two = await openTwoServers();
  const { a, b } = two;
  await two.open(a, 'one');
  for (let index = 0; index < 60; index += 1) await two.open(b, `of b ${index}`);
  const reason = 'its server was not seen for 25 s';
  const closed = await Promise.all([
    presumeSessionsClosed(a, 'server_b', reason),
    presumeSessionsClosed(a, 'server_b', reason),
  ]);
  assert.equal(closed[0] + closed[1], 60);
  assert.equal((await two.trail()).filter((line) => line.endsWith(reason)).length, 60);
  assert.equal(await countOpenSessions(a.read, alpha), 1);
  assert.deepEqual(await listServersWithSessions(a.read), ['server_a']);
});

test('a server that comes back closes only its own, and keeps those that its gateway has', async () => {
  await using two = await openTwoServers();
  const { a, b } = two;
  await two.open(a, 'of another');
  await two.open(b, 'lost');
  await two.open(b, 'held');
  const again = asServer(two.store, 'server_b2');
  for (const [store, directory] of [
    [a, 'A'],
    [b, 'B'],
    [again, 'B'],
  ] as const)
    await store.write((tx) => enterServer(tx, { name: directory, version: '1', directory, settings: {} }));
  const spared = new Set(['held']);
  const lost = await closeLostSessions(again, new Date(at).toISOString(), spared);
  assert.equal(lost, 1);
  assert.deepEqual(await two.past(), ['lost: the service was cut off']);
  assert.deepEqual((await listServersWithSessions(a.read)).sort(), ['server_a', 'server_b2']);
});

test('what was presumed of a server that comes back after all is taken back, and what it says of an end counts', async () => {
  await using two = await openTwoServers();
  const { a, b } = two;
  for (const id of ['open still', 'ended meanwhile', 'nobody knows']) await two.open(b, id);
  await presumeSessionsClosed(a, 'server_b', 'its server was not seen for 25 s');
  assert.equal((await two.past()).length, 3);
  assert.equal(await reopenSessions(a, new Set(['open still'])), 0, 'it is not the one of A');
  assert.equal(await reopenSessions(b, new Set(['open still'])), 1);
  assert.equal(await reopenSessions(b, new Set(['open still'])), 0);
  await two.close(b, 'ended meanwhile', 'the person left');
  assert.deepEqual(await two.past(), [
    'ended meanwhile: the person left',
    'nobody knows: its server was not seen for 25 s',
  ]);
  assert.equal(await countOpenSessions(a.read, alpha), 1);
  assert.deepEqual((await two.trail()).slice(-2), [
    'opened open still: its server is back and has it',
    'closed ended meanwhile: the person left',
  ]);
  const rows = () => two.store.read.selectFrom('open_sessions').select('id').orderBy('id').execute();
  const forget = (now: number) => a.write((tx) => forgetPresumed(tx, now, 10));
  assert.equal(await forget(at + 86_399_999), 0);
  assert.equal((await rows()).length, 2);
  assert.equal(await forget(at + 86_400_000), 1);
  assert.deepEqual(await rows(), [{ id: 'open still' }]);
});

test('a session is recorded in a job that the cluster reported as the person’s at its begin or its end, and in no other', async () => {
  await using store = await openTestStore(physics, () => at);
  const bob = await userId(store, 'bob@physics.example');
  const report = (...ids: string[]) => {
    const own = { user: 'bob', name: 'train', machines: ['a1'] };
    const others = { id: '9', user: 'ada', name: 'train', machines: ['a1'] };
    const runningJobs = [...ids.map((id) => ({ ...own, id })), others];
    return recordSlurmReport(store, alpha, slurmReport({ runningJobs }));
  };
  const sessions = [
    ['seen at its begin', '1', 'a1'],
    ['seen at its end', '2', 'a1'],
    ['never seen', '3', 'a1'],
    ['on another node', '1', 'a2'],
    ['of another person', '9', 'a1'],
  ].map(([id = '', job = '', jobNode = '']) => ({ ...sessionOf(bob, id), job, jobNode }));
  await report('1');
  for (const session of sessions)
    await appendSessionEntries(store, [entryOf({ kind: 'opened', at, session })]);
  await report('2');
  for (const session of sessions)
    await appendSessionEntries(store, [entryOf({ kind: 'closed', at, session, reason: 'x', uses })]);
  const past = await listPastSessions(store.read, {}, { limit: 10 });
  assert.deepEqual(past.map(({ id, job, jobNode }) => [id, job, jobNode]).reverse(), [
    ['seen at its begin', '1', 'a1'],
    ['seen at its end', '2', 'a1'],
    ['never seen', undefined, undefined],
    ['on another node', undefined, undefined],
    ['of another person', undefined, undefined],
  ]);
});

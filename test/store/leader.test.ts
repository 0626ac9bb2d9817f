import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverLifeMs } from '../../src/domain/server.ts';
import type { Store } from '../../src/store/engine/index.ts';
import {
  findToken,
  isLeadFree,
  leaveLead,
  NotLeaderError,
  storeOfLeader,
  takeLead,
} from '../../src/store/servers/leader.ts';
import {
  enterAlone,
  enterServer,
  leaveServers,
  listServers,
  renewServer,
} from '../../src/store/servers/servers.ts';
import { fieldsOf } from '../support/fields.ts';
import { asServer, letPass } from '../support/servers.ts';
import { openTestStore, testOnFile } from '../support/store.ts';

const enter = (store: Store, name: string, directory = name) =>
  store.write((tx) => enterServer(tx, { name, version: '1', directory, settings: {} }));
const take = (store: Store) => store.write(takeLead);

async function two(base: Store): Promise<[Store, Store]> {
  const both: [Store, Store] = [asServer(base), asServer(base)];
  await enter(both[0], 'one');
  await enter(both[1], 'two');
  return both;
}

test('one server at a time leads; another when that one leaves the lead, leaves, or is not seen any more', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  const free = () => Promise.all([one, other].map(isLeadFree));
  assert.deepEqual(await free(), [true, true]);
  await take(one);
  assert.deepEqual(await free(), [true, false]);
  assert.equal(await take(other), undefined);
  await other.write(leaveLead);
  assert.equal(await take(other), undefined, 'nobody leaves the lead of another');
  await one.write(leaveLead);
  assert.ok(await take(other));
  await letPass(other, other.server.id, serverLifeMs);
  assert.ok(await take(one));
  await one.write(leaveServers);
  await renewServer(other);
  assert.ok(await take(other));
});

test('a token rises whenever the lead is taken, also by the server that had it', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  const tokens: number[] = [];
  for (const store of [one, one, other, one]) {
    tokens.push((await take(store)) ?? 0);
    if (store === other || tokens.length === 2) await store.write(leaveLead);
  }
  assert.deepEqual(
    tokens,
    [...new Set(tokens)].sort((a, b) => a - b),
  );
  assert.ok(
    (tokens[0] ?? 0) > Date.parse('2020-01-01'),
    'not below the time: a restored database begins above what it had',
  );
});

test('what the leader writes is written only while it leads', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  let lost = 0;
  const fenced = storeOfLeader(one, (await take(one)) ?? 0, () => {
    lost += 1;
  });
  const increment = (store: Store) =>
    store.write(({ db }) =>
      db
        .updateTable('counters')
        .set((eb) => ({ value: eb('value', '+', 1) }))
        .where('name', '=', 'uid')
        .execute(),
    );
  const counter = lab.store.read.selectFrom('counters').select('value').where('name', '=', 'uid');
  const value = async () => (await counter.executeTakeFirstOrThrow()).value;
  const before = await value();
  await increment(fenced);
  assert.equal(await value(), before + 1);
  // It was not seen for long, which changes nothing as long as nobody takes over.
  await letPass(one, one.server.id, serverLifeMs);
  await increment(fenced);
  await take(other);
  await assert.rejects(increment(fenced), NotLeaderError);
  await assert.rejects(fenced.writeOwn(async () => {}));
  // Among other writes at the same time.
  const [refused, done] = await Promise.allSettled([increment(fenced), increment(other)]);
  assert.deepEqual([refused?.status, done?.status], ['rejected', 'fulfilled']);
  assert.equal(await value(), before + 3);
  assert.equal(lost, 2);
  // Whoever gets it back has another token.
  await other.write(leaveLead);
  assert.equal(await take(one), undefined, 'it was not seen for long');
  await renewServer(one);
  assert.ok(await take(one));
  await assert.rejects(increment(fenced), NotLeaderError);
});

test('a server that was taken out gets an error, and does not lead before it has entered again', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  const token = await take(one);
  assert.deepEqual([await renewServer(one), await findToken(one)], [true, token]);
  // Another process in the same data directory: the one before has certainly ended.
  await enter(asServer(lab.store), 'one');
  assert.equal(await renewServer(one), false);
  assert.equal(await take(one), undefined);
  assert.ok(await take(other), 'at once, without waiting for its time to pass');
  assert.deepEqual(fieldsOf(await listServers(other), 'name', 'isLive', 'leads'), [
    ['two', true, true],
    ['one', true, false],
  ]);
});

test('a server that is gone is named for a day', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  await letPass(one, one.server.id, serverLifeMs);
  const states = async () => (await listServers(other)).map(({ name, isLive }) => [name, isLive]);
  assert.deepEqual(await states(), [
    ['one', false],
    ['two', true],
  ]);
  await letPass(one, one.server.id, 86_400_000);
  await enter(asServer(lab.store), 'three');
  assert.deepEqual(await states(), [
    ['two', true],
    ['three', true],
  ]);
});

test('of servers that end at every start, each with another data directory, only the last ones are named', async () => {
  await using lab = await openTestStore();
  for (let start = 0; start < 30; start += 1) {
    const server = asServer(lab.store);
    await enter(server, `pod-${start}`);
    await letPass(server, server.server.id, serverLifeMs);
  }
  const named = (await listServers(asServer(lab.store))).map(({ name }) => name);
  assert.ok(named.length <= 25 && named.includes('pod-29'), named.join());
});

testOnFile('a server that is alone is one row, whatever was there, always seen, and leads', async () => {
  await using lab = await openTestStore();
  await two(lab.store);
  const entrant = { name: 'alone', version: '1', directory: 'alone', settings: {} };
  await lab.store.write((tx) => enterAlone(tx, entrant));
  const [row, ...more] = await listServers(lab.store);
  assert.deepEqual(
    [row?.name, row?.isLive, row?.leads, row?.id, more],
    ['alone', true, true, lab.store.server.id, []],
  );
});

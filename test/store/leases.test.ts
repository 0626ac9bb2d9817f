import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverLifeMs } from '../../src/domain/server.ts';
import type { Store } from '../../src/store/engine/index.ts';
import {
  freeLeases,
  LeaseLostError,
  listFreeLeases,
  renewLeases,
  requireLease,
  storeOfLease,
  takeLeases,
} from '../../src/store/servers/leases.ts';
import { enterAlone, enterServer, leaveServers, listServers } from '../../src/store/servers/servers.ts';
import { asServer, letPass } from '../support/servers.ts';
import { openTestStore, testOnFile } from '../support/store.ts';

const enter = (store: Store, name: string, directory = name) =>
  store.write((tx) => enterServer(tx, { name, version: '1', directory, settings: {} }));
const take = (store: Store, ...names: string[]) => store.write((tx) => takeLeases(tx, names));

async function two(base: Store): Promise<[Store, Store]> {
  const both: [Store, Store] = [asServer(base), asServer(base)];
  await enter(both[0], 'one');
  await enter(both[1], 'two');
  return both;
}

test('one server at a time has a lease; another gets it when that one leaves it, leaves, or is not seen any more', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  assert.deepEqual([...(await take(one, 'a', 'b', 'c')).keys()], ['a', 'b', 'c']);
  assert.equal((await take(other, 'a', 'b', 'c')).size, 0);
  await one.write((tx) => freeLeases(tx, ['a']));
  assert.deepEqual(await listFreeLeases(other, ['a', 'b', 'c']), ['a']);
  assert.deepEqual([...(await take(other, 'a', 'b', 'c')).keys()], ['a']);
  await letPass(one, one.server.id, serverLifeMs);
  assert.deepEqual([...(await take(other, 'a', 'b')).keys()], ['a', 'b']);
  await one.write(leaveServers);
  assert.deepEqual([...(await take(other, 'c')).keys()], ['c']);
});

test('a token rises whenever a lease is taken, also by the server that had it', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  const tokens: number[] = [];
  for (const store of [one, one, other, one]) {
    tokens.push((await take(store, 'a')).get('a') ?? 0);
    if (store === other || tokens.length === 2) await store.write((tx) => freeLeases(tx, ['a']));
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

test('what is written in the name of a lease is written only while it is held', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  const token = (await take(one, 'a')).get('a') ?? 0;
  let lost = 0;
  const fenced = storeOfLease(one, { name: 'a', token }, () => {
    lost += 1;
  });
  const count = (store: Store) =>
    store.write(({ db }) =>
      db
        .updateTable('counters')
        .set((eb) => ({ value: eb('value', '+', 1) }))
        .where('name', '=', 'uid')
        .execute(),
    );
  const value = async () =>
    (
      await lab.store.read
        .selectFrom('counters')
        .select('value')
        .where('name', '=', 'uid')
        .executeTakeFirstOrThrow()
    ).value;
  const before = await value();
  await count(fenced);
  assert.equal(await value(), before + 1);
  // It was not seen for long, which changes nothing as long as nobody takes over.
  await letPass(one, one.server.id, serverLifeMs);
  await count(fenced);
  await requireLease(one, { name: 'a', token }, () => assert.fail('nobody else has it'));
  await take(other, 'a');
  await assert.rejects(count(fenced), LeaseLostError);
  await assert.rejects(
    requireLease(one, { name: 'a', token }, () => {
      lost += 1;
    }),
    LeaseLostError,
  );
  // Among other writes at the same time.
  const [refused, done] = await Promise.allSettled([count(fenced), count(other)]);
  assert.deepEqual([refused?.status, done?.status], ['rejected', 'fulfilled']);
  assert.equal(await value(), before + 3);
  assert.equal(lost, 3);
  // Whoever gets it back has another token.
  await other.write((tx) => freeLeases(tx, ['a']));
  assert.equal((await take(one, 'a')).size, 0, 'it was not seen for long');
  await renewLeases(one);
  assert.equal((await take(one, 'a')).size, 1);
  await assert.rejects(count(fenced), LeaseLostError);
});

test('a server that was taken out gets an error, and takes nothing before it has entered again', async () => {
  await using lab = await openTestStore();
  const [one, other] = await two(lab.store);
  await take(one, 'a');
  assert.deepEqual(
    [...((await renewLeases(one)) ?? [])].map(([name]) => name),
    ['a'],
  );
  // Another process in the same data directory: the one before has certainly ended.
  await enter(asServer(lab.store), 'one');
  assert.equal(await renewLeases(one), undefined);
  assert.equal((await take(one, 'b')).size, 0);
  assert.deepEqual(
    [...(await take(other, 'a')).keys()],
    ['a'],
    'at once, without waiting for its time to pass',
  );
  assert.deepEqual(
    (await listServers(other)).map(({ name, isLive, leases }) => [name, isLive, leases]),
    [
      ['two', true, 1],
      ['one', true, 0],
    ],
  );
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

testOnFile('a server that is alone is one row, whatever was there, and always seen', async () => {
  await using lab = await openTestStore();
  await two(lab.store);
  const entrant = { name: 'alone', version: '1', directory: 'alone', settings: {} };
  await lab.store.write((tx) => enterAlone(tx, entrant));
  const [row, ...more] = await listServers(lab.store);
  assert.deepEqual([row?.name, row?.isLive, row?.id, more], ['alone', true, lab.store.server.id, []]);
});

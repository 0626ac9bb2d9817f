/** Whose numbers are taken on this machine, and what becomes of the counter of ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findHostOwners, listHostIds } from '../../src/lib/host-ids.ts';
import { raiseNextUid } from '../../src/store/access/numbers.ts';
import { openTestStore } from '../support/store.ts';

const account = (username: string, id: number) => ({ username, uid: id, gid: id });

test('a number or a name of an account or a group of this machine is taken; others are free', async () => {
  const ours = account('nobody', 65_534);
  const owners = await findHostOwners([account('ada', 65_534), account('bob', 29_999), account('daemon', 1)]);
  // An account of the same name is somebody's all the same, unless Andromeda made it.
  assert.match((await findHostOwners([ours])).get(65_534) ?? '', /^the account nobody$/);
  assert.equal(owners.get(65_534), 'the account nobody');
  assert.equal(owners.get(29_999), undefined);
  // A name is somebody's with any number.
  const names = [account('nobody', 29_998), account('daemon', 29_997), account('adm', 29_996)];
  assert.deepEqual(
    [...(await findHostOwners(names)).values()],
    ['the account nobody', 'the account daemon', 'the group adm'],
  );
  assert.ok(listHostIds().includes(65_534));
});

test('the counter of numbers goes up to the base and past what is taken ahead, and never back', async () => {
  await using store = await openTestStore();
  const next = async () =>
    (await store.read.selectFrom('counters').select('value').where('name', '=', 'uid').executeTakeFirst())
      ?.value;
  const raised = async (base: number, taken: number[]) => {
    await raiseNextUid(store, base, taken);
    return next();
  };
  assert.equal(await raised(20_000, [0, 1000, 65_534]), 20_000);
  assert.equal(await raised(30_000, []), 30_000);
  assert.equal(await raised(20_000, [20_000]), 30_000);
  assert.equal(await raised(20_000, [30_900, 30_000, 29_999]), 30_901);
  assert.equal(await raised(20_000, [32_500]), 30_901);
});

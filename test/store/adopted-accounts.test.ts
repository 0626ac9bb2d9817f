/** What a cluster knows of accounts that its hosts had before us. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { updateListedUsers } from '../../src/store/access/access-list-users.ts';
import { listReleased, markHandBack, recordAdopted } from '../../src/store/access/adopted-accounts.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { person } from '../slurm/people.ts';
import { alpha, physics } from '../support/app.ts';
import { openTestStore, requireRow, userId } from '../support/store.ts';

test('who was adopted as privileged stays so when the settings name them no more', async () => {
  await using store = await openTestStore(physics);
  const given = (userId: string, username: string, uid: number) =>
    person(username, uid, { userId, isAdopted: true });
  const ada = given(await userId(store, 'ada@physics.example'), 'ada', 1_003);
  const record = (accounts: (typeof ada)[], adoptPrivileged: string[]) =>
    recordAdopted(store, { clusterId: alpha, accounts }, adoptPrivileged);
  const former = { username: 'ada', uid: 1_003, gid: 1_003 };
  assert.deepEqual(await record([ada], []), []);
  assert.deepEqual(await record([], []), [{ ...former, isPrivileged: false }]);
  await record([ada], ['ada']);
  await record([ada], []);
  assert.deepEqual(await record([], []), [{ ...former, isPrivileged: true }]);

  // The release locks, also on a host that lost its notes, who left since it began.
  const cluster = await requireRow(store.read, 'clusters', { id: alpha });
  await updateListedUsers(store, cluster.organization_id);
  await store.write((tx) => markHandBack(tx, alpha));
  assert.deepEqual(await listReleased(store.read, alpha), { handBack: ['ada'], former: [] });
  const left = { lifecycle_state: 'removed' as const };
  await store.write(({ db }) => updateRows(db, 'memberships', { user_id: ada.userId }, left));
  const released = { handBack: [], former: [{ ...former, isPrivileged: true }] };
  assert.deepEqual(await listReleased(store.read, alpha), released);
});

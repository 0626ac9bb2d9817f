/** What must be mended, when it is tried again, and what the service says of its keys and backups. */

import assert from 'node:assert/strict';
import { mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { noteBackupFailure, noteDrill, noteKeptBackup } from '../../../src/store/data-dir/last-backup.ts';
import { setSimulated } from '../../platform/support.ts';
import { alpha, eventually, startTestApp } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { fieldsOf } from '../../support/fields.ts';
import { isOnFile } from '../../support/store.ts';

test('GET /operator/problems: in a sentence, newest first, with the one thing to do and the next try', async () => {
  await using service = await startTestApp();
  const list = async () => (await service.business('/operator/problems', { as: 'root' })).body.problems;
  const side = async () => {
    const { body } = await service.business('/operator/clusters', { as: 'root' });
    return body.clusters.find(({ name }: { name: string }) => name === 'alpha').sides[0];
  };
  const ofAlpha = async () =>
    (await list()).filter(({ cluster_id: id }: { cluster_id?: string }) => id === alpha);
  const well = await eventually(side, (one) => one.state === 'reported' && one.next_try_at !== null);
  assert.deepEqual([well.failing_since, well.failures], [null, 0]);
  assert.deepEqual(await ofAlpha(), []);

  await setSimulated(service, alpha, { silent: true });
  const [away] = await eventually(ofAlpha, (found) => found.length > 0);
  assert.deepEqual([away.area, away.about, away.side, away.urgency], ['cluster', 'alpha', 'slurm', 'now']);
  assert.match(away.message, /the simulated cluster alpha does not answer/);
  assert.match(away.action, /reaches it over SSH/);
  const failing = await eventually(side, (one) => one.failures > 0 && one.next_try_at !== null);
  assert.equal(failing.failing_since, away.since);
  assert.equal(Number.isNaN(Date.parse(failing.next_try_at)), false);

  await setSimulated(service, alpha, { silent: false, failure: 'the disk <b>is</b> full' });
  const [full] = await eventually(ofAlpha, ([found]) => found?.message.includes('disk') === true);
  assert.equal(full.message, 'the disk <b>is</b> full');
  assert.match(full.action, /applied again by itself/);
  assert.equal(Number.isNaN(Date.parse(full.since)), false);

  const at = new Date(Date.parse(full.since) + 60_000).toISOString();
  noteBackupFailure(`${service.dataDir}/data`, { at, failures: 2, message: 'no room' });
  const [first] = await list();
  if (isOnFile) {
    assert.deepEqual([first.area, first.since], ['backup', at]);
    assert.match(first.message, /2 times in a row: no room/);
  } else {
    // Whoever runs PostgreSQL backs it up.
    assert.deepEqual([first.area, first.since], ['cluster', full.since]);
  }
  await setSimulated(service, alpha, { failure: undefined });
  await eventually(ofAlpha, (found) => found.length === 0);

  // Accounts come into force, and nobody can submit a job: that is to be mended too.
  const schedulerFault = { reason: 'ControllerDown', message: 'slurmctld does not answer.' };
  await setSimulated(service, alpha, { schedulerFault });
  const [down] = await eventually(ofAlpha, (found) => found.length > 0);
  assert.deepEqual([down.message, down.urgency], [schedulerFault.message, 'now']);
  assert.match(down.action, /Start the daemon/);
  const { failure, state, failing_since: since } = await side();
  assert.deepEqual([failure, state, since], [schedulerFault.message, 'reported', down.since]);
  await setSimulated(service, alpha, { schedulerFault: undefined });
  await eventually(ofAlpha, (found) => found.length === 0);

  await setSimulated(service, alpha, { silent: true });
  await eventually(ofAlpha, (found) => found.length > 0);
  await service.app.store.write(async ({ db }) => {
    await db.deleteFrom('observations').where('cluster_id', '=', alpha).execute();
    await db.deleteFrom('cluster_sides').where('cluster_id', '=', alpha).execute();
    await db.updateTable('clusters').set({ created_at: '2020-01-01T00:00:00Z' }).execute();
  });
  const [never] = await ofAlpha();
  assert.deepEqual([never.since, never.urgency], ['2020-01-01T00:00:00.000Z', 'soon']);
  assert.match(never.message, /It has not reported yet/);
});

test('GET /operator/problems: a copy of the audit trail that cannot be written, until it can', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'trail.jsonl');
  await using service = await startTestApp({ config: { audit: { file } } });
  rmSync(file, { force: true });
  mkdirSync(file);
  await service.put('ada', '/me/login-preferences', { shell: '/bin/zsh' });
  const list = async () => {
    const { body } = await service.business('/operator/problems', { as: 'root' });
    return body.problems.filter(({ area }: { area: string }) => area === 'audit');
  };
  const [problem] = await eventually(list, (found) => found.length > 0);
  assert.deepEqual([problem.about, problem.urgency], [`copy to ${file}`, 'now']);
  assert.match(problem.message, /EISDIR/);
  assert.match(problem.action, /its disk has room\. What waits is then written by itself/);
  assert.equal(Number.isNaN(Date.parse(problem.since)), false);
  rmdirSync(file);
  await eventually(list, (found) => found.length === 0);
});

test('GET /operator/installation: keys, and the state of backups', async () => {
  await using service = await startTestApp();
  const get = async () => (await service.business('/operator/installation', { as: 'root' })).body;
  const before = await get();
  assert.deepEqual(fieldsOf(before.keys, 'kind'), ['host', 'client', 'audit']);
  const gateway = (await service.business('/operator/gateway', { as: 'root' })).body;
  assert.equal(before.keys[0].current.line, gateway.host_key);
  const { key } = (await service.business('/operator/audit/heads', { as: 'root' })).body;
  assert.deepEqual(before.keys[2], { kind: 'audit', current: { id: key } });
  assert.deepEqual(before.backup, {});
  const dataDir = `${service.dataDir}/data`;
  const made = { at: '2030-01-01T00:00:00.000Z', file: '/b/one', bytes: 5 };
  noteKeptBackup(dataDir, { ...made, awaits: false });
  noteDrill(dataDir, { at: made.at, file: '/b/one', isGood: true });
  assert.deepEqual((await get()).backup, {
    last: made,
    kept: made,
    drill: { at: made.at, file: '/b/one', good: true },
  });
});

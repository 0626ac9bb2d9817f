/** Watches beside the list: what changes there by itself is seen at once, and nothing else asks for a pass. */
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { becomes, eventually } from '../support/app.ts';
import { without } from './accounts.ts';
import type { Asked } from './fake-api.ts';
import { grant, type KubernetesLab, startBound, startKubernetesLab } from './lab.ts';
import { recorded } from './recorded.ts';

/** A lab whose driver gets the passes that it asks for, one at a time. */
async function startWatched(): Promise<KubernetesLab> {
  const lab = await startKubernetesLab();
  let running: Promise<unknown> = Promise.resolve();
  lab.onWake = () => {
    running = running.then(() => lab.pass()).catch(() => {});
  };
  lab.access.grants.push(grant('x'), grant('c', { scope: 'team-c' }));
  await lab.pass();
  await watching(lab);
  return lab;
}

/** Until bindings and namespaces are watched. */
function watching(lab: KubernetesLab) {
  return eventually(
    async () => lab.api.asked.filter(({ query }) => query.has('watch')).length,
    (count) => count >= 3,
  );
}

const keyOf = (lab: KubernetesLab, id: string) =>
  [...lab.api.bindings.all.keys()].find((key) => key.endsWith(`.grant_${id}`)) ?? '';

test('a binding that is changed or loses our label is as it was, and a grant is bound once its namespace is there', async () => {
  await using lab = await startWatched();
  lab.api.bindings.edit(keyOf(lab, 'x'), (binding) => {
    binding.subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }];
  });
  await becomes(() => lab.bound()[0], 'team-a/grant_x edit x@physics.example');
  lab.api.bindings.edit(keyOf(lab, 'x'), ({ metadata }) => {
    delete metadata.labels?.['app.kubernetes.io/managed-by'];
  });
  const labels = () => lab.api.bindings.all.get(keyOf(lab, 'x'))?.metadata.labels;
  await becomes(() => labels()?.['app.kubernetes.io/managed-by'], 'andromeda');
  lab.api.world.namespaces.set('team-c', true);
  await becomes(() => lab.bound().length, 2);
});

/** Until a pass lists nothing: the watches may just have begun. */
async function settled(lab: KubernetesLab): Promise<void> {
  const isList = ({ path, query }: Asked) => path.endsWith('bindings') && !query.has('watch');
  await eventually(
    async () => {
      lab.api.asked = [];
      await lab.driver.apply(lab.access, AbortSignal.timeout(60_000));
      return lab.api.asked.filter(isList).length;
    },
    (count) => count === 0,
  );
}

test('a name that is refused, and a ClusterRole that goes, whose grants are in force no more, are named though no binding changes', async () => {
  await using lab = await startKubernetesLab({
    claim: 'sub',
    settings: { usernamePrefix: '-' },
    token: 'admin',
  });
  lab.access.grants.push(grant('x', { roleId: 'gpu-quota-reader' }));
  await settled(lab);
  lab.access.grants.push(grant('y', { subjects: ['system:admin'] }));
  assert.match((await lab.pass()).failure ?? '', /^The name of y@physics.example begins with system:/);
  lab.access.grants.pop();
  lab.access.grants.push(grant('z'));
  await settled(lab);
  lab.api.world.clusterRoles.delete('gpu-quota-reader');
  const outcome = await lab.driver.apply(lab.access, AbortSignal.timeout(60_000));
  assert.equal(outcome?.failure, 'There is no ClusterRole gpu-quota-reader; 1 grant waits for it.');
  assert.deepEqual(outcome?.bound, ['grant_z']);
});

test('watches begin anew with other credentials', async () => {
  await using lab = await startWatched();
  lab.api.asked = [];
  writeFileSync(lab.settings.tokenFile ?? '', 'admin');
  await lab.pass();
  await watching(lab);
  assert.equal(lab.api.asked.filter(({ query }) => query.get('limit') === '1').length, 3);
});

test('a change that could not be looked at hides none of another client', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'));
  await settled(lab);
  const { wakes, settings } = lab;
  const file = settings.tokenFile ?? '';
  renameSync(file, `${file}.away`);
  lab.access.grants[0] = grant('x', { relation: 'kubernetes.admin' });
  assert.match(
    (await lab.driver.apply(lab.access, AbortSignal.timeout(60_000)))?.failure ?? '',
    /no such file/,
  );
  renameSync(`${file}.away`, file);
  lab.access.grants[0] = grant('x');
  lab.api.bindings.edit(keyOf(lab, 'x'), ({ roleRef }) => {
    roleRef.name = 'admin';
  });
  await becomes(() => lab.wakes > wakes, true);
  await lab.pass();
  assert.deepEqual(lab.bound(), ['team-a/grant_x edit x@physics.example']);
});

test('while nothing changes nothing is listed, and what changes is seen all the same', async () => {
  await using lab = await startWatched();
  lab.access.grants.pop();
  const lists = () =>
    lab.api.asked.filter(({ path, query }) => path.endsWith('bindings') && !query.has('watch')).length;
  await settled(lab);
  const report = await lab.driver.apply(lab.access, AbortSignal.timeout(60_000));
  assert.deepEqual([report?.failure, report?.bound, lists()], [null, ['grant_x'], 0]);
  lab.access.grants.push(grant('y', { scope: 'team-b' }));
  await lab.pass();
  assert.equal(lab.bound().length, 2);
  lab.api.bindings.drop(keyOf(lab, 'x'));
  await becomes(() => lab.bound().length, 2);
});

test('what a pass made itself, and what is not ours, asks for no pass', async () => {
  await using lab = await startWatched();
  const { wakes } = lab;
  lab.access.grants.push(grant('y', { scope: 'team-b' }));
  await lab.pass();
  lab.access.grants.splice(0, 1);
  await lab.pass();
  lab.api.world.namespaces.set('team-z', true);
  await sleep(300);
  assert.equal(lab.wakes, wakes);
});

test('a version that the server has forgotten (410) costs a pass, and the watch goes on', async () => {
  await using lab = await startWatched();
  const { wakes } = lab;
  const before = lab.api.asked.length;
  // The watches end, and what they go on from is too old.
  lab.api.changes.expire();
  await lab.api.stop();
  await lab.api.start();
  await becomes(() => lab.wakes > wakes, true);
  await eventually(
    async () => lab.api.asked.slice(before).filter(({ query }) => query.has('watch')).length,
    (count) => count >= 3,
  );
  lab.api.bindings.drop(keyOf(lab, 'x'));
  await becomes(() => lab.bound().length, 1);
});

test('a server that comes back is noticed by the watch, whatever the back-off of the passes', async () => {
  await using lab = await startWatched();
  await lab.api.stop();
  await sleep(1_500);
  const { wakes } = lab;
  await lab.api.start();
  await becomes(() => lab.wakes > wakes, true);
});

test('a binding that is changed all the time brings no storm of passes', async () => {
  await using lab = await startBound('x');
  await watching(lab);
  for (let n = 0; n < 200; n++) {
    lab.api.bindings.edit(keyOf(lab, 'x'), ({ metadata }) => {
      metadata.labels = { n: String(n) };
    });
    lab.api.bindings.edit(keyOf(lab, 'x'), ({ metadata }) => {
      metadata.labels = { 'app.kubernetes.io/managed-by': 'andromeda', n: String(n) };
    });
  }
  await sleep(500);
  assert.ok(lab.wakes <= 12, `${lab.wakes} passes for 400 changes`);
});

test('watches that end at once bring no storm of requests, and each pass lists', async () => {
  const expired = (recorded('watch/watch-expired-410').body as unknown[]).map((event) =>
    JSON.stringify(event),
  );
  for (const body of ['', `${expired.join('\n')}\n`]) {
    await using lab = await startKubernetesLab();
    lab.api.fault = ({ query }) => (query.has('watch') ? { status: 200, headers: {}, body } : undefined);
    lab.access.grants.push(grant('x'));
    await lab.pass();
    await watching(lab);
    await sleep(300);
    assert.ok(lab.api.asked.filter(({ query }) => query.has('watch')).length <= 12);
    lab.api.bindings.drop(keyOf(lab, 'x'));
    await lab.pass();
    assert.equal(lab.bound().length, 1);
  }
});

test('without the right to watch, the interval is what there is, and nothing is wrong', async () => {
  await using lab = await startKubernetesLab();
  lab.api.accounts['andromeda'] = { user: 'andromeda', rules: without({ verb: 'watch' }) };
  lab.access.grants.push(grant('x'));
  assert.equal((await lab.pass()).failure, null);
  await sleep(300);
  assert.ok(lab.api.asked.filter(({ query }) => query.has('watch')).length <= 3);
  assert.equal(lab.wakes, 0);
});

/** What gets no answer holds up nothing else, and watches beside the list: what changes there by itself is seen at once. */
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { becomes, eventually } from '../support/app.ts';
import { without } from './accounts.ts';
import type { Asked } from './fake-api.ts';
import { grant, type KubernetesLab, startBound, startKubernetesLab } from './lab.ts';
import { recorded } from './recorded.ts';

/** Requests that are never answered, as long as the test runs. */
function hang(lab: KubernetesLab, which: (asked: Asked) => boolean) {
  const hung: string[] = [];
  const never = Promise.withResolvers<undefined>();
  lab.api.fault = (asked) => {
    if (!which(asked)) return undefined;
    hung.push(`${asked.method} ${asked.path}`);
    return never.promise;
  };
  return { hung, [Symbol.dispose]: () => never.resolve(undefined) };
}

const apply = (lab: KubernetesLab, superseded?: AbortSignal) =>
  lab.driver.apply(lab.access, AbortSignal.timeout(60_000), superseded);

test('an observation that gets no answer ends no change that is under way', async () => {
  await using lab = await startKubernetesLab();
  const answered = Promise.withResolvers<undefined>();
  lab.api.fault = ({ path }) =>
    path === '/readyz' || path.endsWith('bindings') ? answered.promise : undefined;
  lab.access.grants.push(grant('x'));
  const applied = apply(lab);
  await assert.rejects(lab.driver.observe(AbortSignal.timeout(300)), /it does not answer in time/);
  answered.resolve(undefined);
  assert.deepEqual(await applied, { failure: null, retry: false, bound: ['grant_x'] });
});

test('a change waits for no write that gets no answer, and that write is not sent twice', async () => {
  await using lab = await startBound('x');
  lab.access.grants.push(grant('y', { scope: 'team-b' }));
  using waiting = hang(lab, ({ method }) => method === 'POST');
  const superseded = new AbortController();
  const first = apply(lab, superseded.signal);
  await becomes(() => waiting.hung.length, 1);
  superseded.abort();
  assert.equal(await first, undefined);
  lab.access.grants.shift();
  await apply(lab);
  assert.deepEqual(lab.bound(), []);
  assert.equal(waiting.hung.length, 1);
});

test('what a write makes that was revoked meanwhile asks for a pass', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'));
  const superseded = new AbortController();
  let answer: (() => void) | undefined;
  lab.api.fault = ({ method }) =>
    method === 'POST'
      ? new Promise((resolve) => {
          answer = () => resolve(undefined);
        })
      : undefined;
  const first = apply(lab, superseded.signal);
  await becomes(() => answer !== undefined, true);
  superseded.abort();
  await first;
  lab.access.grants.pop();
  await apply(lab);
  const { wakes } = lab;
  answer?.();
  await becomes(() => lab.wakes > wakes, true);
  await apply(lab);
  assert.deepEqual(lab.bound(), []);
});

test('what an earlier pass writes while a list is under way asks for a pass', async () => {
  await using lab = await startKubernetesLab();
  lab.api.accounts['andromeda'] = { user: 'andromeda', rules: without({ verb: 'watch' }) };
  lab.access.grants.push(grant('x'));
  const [written, listed] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const asked: string[] = [];
  lab.api.fault = ({ method, path }) => {
    asked.push(method);
    if (method === 'POST') return written.promise;
    return asked.includes('POST') && path.endsWith('/clusterrolebindings') ? listed.promise : undefined;
  };
  const superseded = new AbortController();
  const first = apply(lab, superseded.signal);
  await becomes(() => asked.includes('POST'), true);
  superseded.abort();
  await first;
  lab.access.grants.pop();
  const before = asked.length;
  const second = apply(lab);
  await becomes(() => asked.length >= before + 2, true);
  await turn();
  written.resolve(undefined);
  await becomes(() => lab.wakes, 1);
  listed.resolve(undefined);
  await second;
  await apply(lab);
  assert.deepEqual(lab.bound(), []);
});

test('a removal that gets no answer keeps no new grant unbound', async () => {
  await using lab = await startBound('x');
  using waiting = hang(lab, ({ method }) => method === 'DELETE');
  lab.access.grants.splice(0, 1, grant('y'));
  const superseded = new AbortController();
  const applied = apply(lab, superseded.signal);
  await becomes(() => lab.bound().length, 2);
  assert.equal(waiting.hung.length, 1);
  superseded.abort();
  await applied;
});

test('what has to go goes while namespaces and roles get no answer', async () => {
  await using lab = await startKubernetesLab({ token: 'admin' });
  lab.access.grants.push(grant('x'), grant('y', { roleId: 'gpu-quota-reader' }));
  await lab.pass();
  using waiting = hang(lab, ({ path }) => path.includes('clusterroles/') || path === '/api/v1/namespaces');
  lab.access.grants.shift();
  const stopping = new AbortController();
  const applied = lab.driver.apply(lab.access, stopping.signal);
  await becomes(() => lab.bound().length, 1);
  assert.equal(waiting.hung.length, 2);
  stopping.abort();
  await assert.rejects(applied);
});

test('a server that asks for a long wait is named, and asked again by a later pass', async () => {
  await using lab = await startKubernetesLab();
  lab.access.grants.push(grant('x'));
  const busy = recorded('errors/too-many-requests-apply-429');
  lab.api.fault = ({ method }) =>
    method === 'POST' ? { ...busy, headers: { ...busy.headers, 'retry-after': '30' } } : undefined;
  const outcome = await apply(lab);
  assert.match(outcome?.failure ?? '', /^The API server is in trouble \(429\): /);
  assert.equal(outcome?.retry, true);
  assert.equal(lab.api.asked.filter(({ method }) => method === 'POST').length, 1);
});

test('a page of a proxy is no empty list: it is named, and nothing is written', async () => {
  await using lab = await startBound('x');
  lab.api.asked = [];
  for (const body of ['<html>Sign in</html>', '{}', '{"items":"none"}']) {
    lab.api.fault = ({ path }) => (path.startsWith('/apis') ? { status: 200, headers: {}, body } : undefined);
    await assert.rejects(
      apply(lab),
      /cannot be reached: what answers .*bindings is not a Kubernetes API server/,
    );
    await assert.rejects(lab.driver.observe(AbortSignal.timeout(10_000)), /is not a Kubernetes API server/);
  }
  await turn();
  assert.deepEqual(
    lab.api.asked.filter(({ method }) => method !== 'GET'),
    [],
  );
});

test('who changes a binding again and again is named, and no one for changes that were wanted', async () => {
  await using lab = await startKubernetesLab();
  for (let n = 0; n < 6; n++) {
    lab.access.grants.push(grant('x'));
    await apply(lab);
    lab.access.grants.pop();
    assert.equal((await apply(lab))?.failure, null);
  }
  lab.access.grants.push(grant('x'));
  await apply(lab);
  const [key = ''] = lab.api.bindings.all.keys();
  const edit = async (manager: string) => {
    lab.api.bindings.edit(key, ({ metadata, subjects }) => {
      const time = '2026-11-20T23:55:28Z';
      Object.assign(metadata, { managedFields: [{ manager, time }, { manager: 'older' }] });
      subjects?.pop();
    });
    let failure: string | null | undefined;
    // What changed there is known by an event.
    await eventually(
      async () => {
        failure = (await apply(lab))?.failure;
        return lab.bound()[0];
      },
      (binding) => binding?.endsWith(' x@physics.example') === true,
    );
    return failure;
  };
  for (let n = 0; n < 3; n++) assert.equal(await edit('kubectl-edit'), null);
  const said = (who: string) =>
    `RoleBinding ${key} is changed by ${who} again and again, and put back each time.`;
  assert.equal(await edit('kubectl-edit'), said('kubectl-edit'));
  assert.equal(await edit('andromeda'), said("another installation with this cluster's ID"));
});

test('more permissions than a cluster can have are refused in words, and what must go goes', async () => {
  await using lab = await startBound('x');
  lab.access.grants.splice(0, 1);
  for (let n = 0; n <= 10_000; n++) lab.access.grants.push(grant(`g${n}`));
  assert.match(
    (await apply(lab))?.failure ?? '',
    /^More than 10000 permissions are more than a cluster can have/,
  );
  assert.deepEqual(lab.bound(), []);
});

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

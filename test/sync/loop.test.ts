import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import type { Cluster } from '../../src/domain/clusters/cluster.ts';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { findPersonOnCluster } from '../../src/store/access/access-facts.ts';
import { findAccessList, readAccessList } from '../../src/store/access/access-lists.ts';
import {
  findCluster,
  raiseDesiredGeneration,
  startRelease,
  updateClusterSettings,
} from '../../src/store/clusters/clusters.ts';
import { findObservation } from '../../src/store/clusters/observations.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import type { Change, Store } from '../../src/store/engine/index.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { createSshKey } from '../../src/store/people/ssh-keys.ts';
import { startSyncLoop } from '../../src/sync/index.ts';
import { becomes, eventually } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, userId } from '../support/store.ts';
import { HandMade } from './hand-made.ts';

const simulated = { computeNodes: 3, gpusPerNode: 1 };
const lab: Lab = {
  organizations: [
    { slug: 'x', name: 'X', members: [{ email: 'ada@x.example', role: 'owner', username: 'ada' }] },
  ],
  clusters: ['alpha', 'beta'].map((name) => ({ name, organization: 'x', scheduler: 'sunk', simulated })),
};

const noKubernetes = () => Promise.reject(new Error('no cluster here has a Kubernetes side'));

async function start(
  options: {
    intervalMs?: number;
    alpha?: Partial<HandMade>;
    recheckSessions?: (clusterId: string) => Promise<void>;
    log?: Logger;
  } = {},
) {
  const opened = await openTestStore(lab);
  const drivers = { alpha: Object.assign(new HandMade(), options.alpha), beta: new HandMade() };
  const made: string[] = [];
  const loop = startSyncLoop({
    store: opened.store,
    drivers: {
      async slurm(cluster: Cluster) {
        made.push(cluster.name);
        return drivers[cluster.name as 'alpha'];
      },
      kubernetes: noKubernetes,
    },
    subjectIssuer: undefined,
    intervalMs: options.intervalMs ?? 60_000,
    recheckSessions: options.recheckSessions,
    log: options.log ?? createLogger('silent'),
    now: Date.now,
  });
  let stopped = false;
  const stop = async () => {
    if (!stopped) await loop.stop();
    stopped = true;
  };
  const [alpha] = await listRows(opened.store.read, 'clusters', { name: 'alpha' });
  return {
    ...opened,
    ...drivers,
    made,
    stop,
    alphaId: alpha?.id ?? '',
    passes: () => loop.passesOf(alpha?.id ?? '', 'slurm'),
    async [Symbol.asyncDispose]() {
      await stop();
      await opened[Symbol.asyncDispose]();
    },
  };
}

async function addKey(store: Store): Promise<void> {
  const user = await userId(store, 'ada@x.example');
  const key = parseSshPublicKey(newPublicKey());
  await store.write((tx) => createSshKey(tx, { userId: user, key, commandId: 'c' }));
}

const cluster = (store: Store, id: string) =>
  store.read.selectFrom('clusters').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const rests = (ms: number) => new Promise((done) => setTimeout(done, ms));

test('a new cluster is looked at at once: list made and accepted, applied, observed, active', async () => {
  await using lab = await start();
  const row = await eventually(
    () => cluster(lab.store, lab.alphaId),
    ({ state }) => state === 'active',
  );
  assert.deepEqual([row.lifecycle_version, row.assigned_node_count], [2, 3]);
  assert.equal(lab.alpha.applied.length, 1);
  assert.deepEqual(fieldsOf(lab.alpha.applied[0]?.accounts, 'username', 'uid'), [['ada', 20000]]);
  // It is active with the first report, and looked at once more when the list was applied.
  await eventually(
    () => findObservation(lab.store.read, lab.alphaId, 'slurm'),
    (observation) => observation?.manifestGeneration === 1,
  );
});

test('a change reaches every cluster concerned without waiting for the interval', async () => {
  await using lab = await start();
  await becomes(() => lab.alpha.applied.length + lab.beta.applied.length, 2);
  await addKey(lab.store);
  for (const { applied } of [lab.alpha, lab.beta]) await becomes(() => applied.length, 2);
  assert.deepEqual(lab.alpha.applied[1]?.accounts[0]?.keySetGeneration, 1);
  assert.equal(lab.alpha.applied[1]?.accounts[0]?.keyFingerprints.length, 1);
});

test('it applies only what is not in force, and activates once', async () => {
  await using lab = await start({ intervalMs: 20 });
  await becomes(() => lab.alpha.observed > 6, true);
  assert.equal(lab.alpha.applied.length, 1);
  assert.equal((await cluster(lab.store, lab.alphaId)).lifecycle_version, 2);
  assert.deepEqual(lab.made.sort(), ['alpha', 'beta']);
});

test('a lost notice costs one interval and no more', async () => {
  await using lab = await start({ intervalMs: 50 });
  await becomes(() => lab.alpha.applied.length, 1);
  // A change that nobody announced.
  await lab.store.write(async ({ db }) => {
    await db.updateTable('users').set('login_shell', '/bin/zsh').where('kind', '=', 'person').execute();
  });
  await becomes(() => lab.alpha.applied.length, 2);
  assert.equal(lab.alpha.applied[1]?.accounts[0]?.shell, '/bin/zsh');
});

test('a cluster that forgot what was applied gets it again', async () => {
  await using lab = await start({ intervalMs: 30 });
  await becomes(() => lab.alpha.applied.length, 1);
  lab.alpha.report = { ...lab.alpha.report, manifestGeneration: 0, accounts: [] };
  await becomes(() => lab.alpha.applied.length, 2);
});

test('a cluster that fails backs off, changes do not hurry it, and it recovers', async () => {
  await using lab = await start({ alpha: { observeFault: 'no route to host' } });
  const { nextAt = 0 } = await eventually(
    async () => ({ ...lab.passes() }),
    ({ nextAt }) => nextAt !== undefined,
  );
  const { observed } = lab.alpha;
  for (let i = 0; i < 5; i++) await addKey(lab.store);
  await becomes(() => lab.alpha.observed > observed, true);
  assert.ok((lab.alpha.observedAt[observed] ?? 0) >= nextAt - 5, 'not before its time');
  assert.equal((await cluster(lab.store, lab.alphaId)).state, 'provisioning');
  const observations = await lab.store.read.selectFrom('observations').select('cluster_id').execute();
  assert.ok(
    observations.every(({ cluster_id }) => cluster_id !== lab.alphaId),
    'nothing is recorded of it',
  );
  lab.alpha.observeFault = '';
  await becomes(() => lab.alpha.applied.length, 1);
  assert.equal(lab.alpha.applied[0]?.accounts[0]?.keySetGeneration, 5);
});

test('a change that a cluster can be seen not to take is waiting until it is in force', async () => {
  const behind: number[] = [];
  const log = createLogger('debug', (line) => {
    const { event, cluster, behindMs } = JSON.parse(line);
    if (event === 'sync.passed' && cluster === 'alpha') behind.push(behindMs);
  });
  await using lab = await start({ intervalMs: 50, log });
  const isInForce = () => becomes(() => behind.at(-1), 0);
  await isInForce();
  lab.alpha.refusing = true;
  await addKey(lab.store);
  await becomes(() => (behind.at(-1) ?? 0) > 300, true);
  lab.alpha.refusing = false;
  await isInForce();
});

test('a cluster that hangs does not hold up another, nor the end', async () => {
  await using lab = await start({
    intervalMs: 20,
    alpha: { hanging: true },
  });
  await becomes(() => lab.beta.observed > 3, true);
  assert.equal(lab.alpha.observed, 1);
  await lab.stop();
  assert.deepEqual([lab.alpha.closed, lab.beta.closed], [1, 1]);
  const { observed } = lab.beta;
  await rests(60);
  assert.equal(lab.beta.observed, observed, 'nothing is looked at after the end');
});

test('a control plane that is not ready leaves the cluster provisioning', async () => {
  await using lab = await start({
    intervalMs: 20,
    alpha: { report: { ...new HandMade().report, controlPlaneReady: false } },
  });
  await becomes(() => lab.alpha.observed > 3, true);
  assert.equal((await cluster(lab.store, lab.alphaId)).state, 'provisioning');
});

/** A loop that hears of the changes that a test announces, and of no others. */
async function startAnnounced(store: Store, from: 'here' | 'elsewhere', log: Logger) {
  let notify: (changes: Change[]) => void = () => {};
  const loop = startSyncLoop({
    store: {
      ...store,
      onChange(_kinds, listener) {
        notify = (changes) => listener(changes as never, { from });
        return () => {};
      },
    },
    drivers: { slurm: async () => new HandMade(), kubernetes: noKubernetes },
    subjectIssuer: undefined,
    intervalMs: 3_600_000,
    log,
    now: Date.now,
  });
  return { loop, notify };
}

for (const [what, waits] of [
  ['what is applied is superseded by a change, which is applied next', { makingWay: true }],
  ['a look that waits for a host ends with a change, which does not wait for it', { lookingAway: true }],
] as const)
  test(what, async () => {
    await using it = await start({ alpha: waits });
    await becomes(() => it.alpha.observed > 0 && (it.alpha.lookingAway || it.alpha.applied.length > 0), true);
    await it.store.write(async ({ changed }) => changed({ kind: 'cluster', clusterId: it.alphaId }));
    await eventually(
      async () => (await findObservation(it.store.read, it.alphaId, 'slurm'))?.manifestGeneration ?? 0,
      (generation) => generation > 0,
    );
  });

test('a cluster of which no host answers is not observed, however often it is asked', async () => {
  let seen = 0;
  const log = createLogger('debug', (line) => {
    const { event, cluster } = JSON.parse(line);
    if (event === 'sync.observed' && cluster === 'alpha') seen += 1;
  });
  await using it = await start({ intervalMs: 20, log });
  await becomes(() => it.alpha.applied.length > 0, true);
  it.alpha.report = { ...it.alpha.report, silent: 'all' };
  const asked = async (times: number) => {
    const before = it.alpha.observed;
    await becomes(() => it.alpha.observed >= before + times, true);
  };
  await asked(2);
  const find = async () => findObservation(it.store.read, it.alphaId, 'slurm');
  const [before, count] = [await find(), seen];
  await asked(3);
  assert.equal((await find())?.observedAt, before?.observedAt);
  assert.equal(seen, count);
});

test('a change at the very end of a pass brings the next one', async () => {
  await using opened = await openTestStore(lab);
  let passes = 0;
  let changesAfter: number | undefined;
  const log = createLogger('debug', (line) => {
    const { event, cluster } = JSON.parse(line);
    if (event !== 'sync.passed' || cluster !== 'alpha') return;
    passes += 1;
    // Behind what is left of the pass, and before anything that waits for its end.
    if (passes === changesAfter)
      queueMicrotask(() => notify([{ kind: 'cluster', clusterId: alpha?.id ?? '' }]));
  });
  const [alpha] = await listRows(opened.store.read, 'clusters', { name: 'alpha' });
  const { loop, notify } = await startAnnounced(opened.store, 'here', log);
  try {
    // What the first pass itself changed may bring a second one.
    await new Promise((done) => setTimeout(done, 300));
    const before = passes;
    changesAfter = before + 1;
    notify([{ kind: 'cluster', clusterId: alpha?.id ?? '' }]);
    await becomes(() => passes >= before + 2, true);
  } finally {
    await loop.stop();
  }
});

test('where everything may have changed, clusters that were not announced are found, and all are looked at', async () => {
  await using opened = await openTestStore();
  const passed: string[] = [];
  const log = createLogger('debug', (line) => {
    const { event, cluster } = JSON.parse(line);
    if (event === 'sync.passed') passed.push(cluster);
  });
  const { loop, notify } = await startAnnounced(opened.store, 'elsewhere', log);
  try {
    // As another server would.
    await createInstallation(opened.store, lab, 'test');
    notify([{ kind: 'everything' }]);
    await becomes(() => new Set(passed).size, 2);
  } finally {
    await loop.stop();
  }
});

test('a cluster configuration alone is applied, and is no new generation of the list', async () => {
  await using lab = await start();
  await becomes(() => lab.alpha.applied.length, 1);
  await lab.store.write((tx) => raiseDesiredGeneration(tx, lab.alphaId));
  await becomes(() => lab.alpha.applied.length, 2);
  assert.deepEqual(fieldsOf(lab.alpha.applied, 'generation', 'desiredGeneration'), [
    [1, 1],
    [1, 2],
  ]);
  const list = await findAccessList(lab.store.read, lab.alphaId);
  assert.deepEqual([list?.generation, list?.desiredGeneration], [1, 2]);
});

const release = (store: Store, clusterId: string) =>
  store.write((tx) => startRelease(tx, { clusterId, commandId: null }));

test('a cluster that is releasing is released by its driver, let go of, and never looked at again', async () => {
  await using lab = await start({ intervalMs: 20 });
  await becomes(async () => (await cluster(lab.store, lab.alphaId)).state, 'active');
  const { version } = await cluster(lab.store, lab.alphaId);
  await release(lab.store, lab.alphaId);
  const row = await eventually(
    () => cluster(lab.store, lab.alphaId),
    ({ state }) => state === 'released',
  );
  assert.deepEqual([row.lifecycle_version, row.version, row.cleanup_state], [4, version + 2, 'done']);
  assert.ok(row.teardown_completed_at !== null);
  await becomes(() => lab.alpha.closed, 1);
  const { observed } = lab.alpha;
  const { generation } = (await findAccessList(lab.store.read, lab.alphaId)) ?? {};
  await addKey(lab.store);
  await becomes(() => lab.beta.applied.length, 2);
  await rests(60);
  assert.deepEqual([lab.alpha.released, lab.alpha.observed], [1, observed]);
  const found = await readAccessList(lab.store, lab.alphaId);
  assert.deepEqual([found?.list.generation, found?.users], [generation, []], 'its list changes no more');
  const user = await userId(lab.store, 'ada@x.example');
  const person = await findPersonOnCluster(lab.store, lab.alphaId, user);
  assert.equal(person?.facts.confirmed, undefined);
});

for (const followsSettings of [false, true]) {
  const title = followsSettings
    ? 'a driver that follows its settings stays'
    : 'another driver is made for other settings';
  test(title, async () => {
    await using lab = await start({ alpha: { followsSettings } });
    await becomes(() => lab.alpha.applied.length, 1);
    const alpha = await findCluster(lab.store.read, lab.alphaId);
    assert.ok(alpha);
    const settings = { simulated: { ...simulated, applyMs: 5 } };
    await lab.store.write((tx) => updateClusterSettings(tx, alpha, settings));
    await becomes(() => lab.alpha.applied.length, 2);
    const made = lab.made.filter((name) => name === 'alpha').length;
    assert.deepEqual([made, lab.alpha.closed], followsSettings ? [1, 0] : [2, 1]);
  });
}

test('a cluster that takes long to apply is looked at meanwhile, so that its people can still log in', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using house = await start({
    intervalMs: 20,
    alpha: { slow: promise },
  });
  const { store, alpha, alphaId } = house;
  const report = () => findObservation(store.read, alphaId, 'slurm');
  await becomes(() => alpha.applied.length, 1);
  const first = await eventually(report, (one) => one !== undefined);
  await eventually(report, (one) => one !== undefined && one.observedAt > (first?.observedAt ?? 0));
  const meanwhile = await report();
  assert.equal(meanwhile?.manifestGeneration, 0, 'what is in force is still the old list');
  assert.equal(alpha.applied.length, 1);
  resolve();
  await eventually(report, (one) => one?.manifestGeneration === 1);
});

test('sessions are checked again before anything is applied: a person reads why, and not that the login node closed', async () => {
  const rechecked: string[] = [];
  let applied = -1;
  await using lab = await start({
    async recheckSessions(clusterId) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      rechecked.push(clusterId);
      if (clusterId === lab.alphaId) applied = lab.alpha.applied.length;
    },
  });
  await becomes(() => lab.alpha.applied.length, 1);
  assert.equal(applied, 0, 'nothing was applied before');
  assert.ok(rechecked.includes(lab.alphaId));
});

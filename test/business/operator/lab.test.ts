import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueryResult, RootOperationNode, UnknownRow } from 'kysely';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../../src/domain/clusters/lab-member.ts';
import { createCluster } from '../../../src/store/clusters/clusters.ts';
import { takeSteps } from '../../../src/store/data-dir/lab.ts';
import { listAllLiveGrants } from '../../../src/store/organizations/grants.ts';
import { createOrganization } from '../../../src/store/organizations/organizations.ts';
import { createPerson } from '../../../src/store/people/people.ts';
import { alpha, eventually, physics, type Reply, startTestApp } from '../../support/app.ts';
import { refused } from '../../support/refused.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { openTestStore, requireRow } from '../../support/store.ts';

const [alphaCluster, betaCluster] = physics.clusters ?? [];
if (!alphaCluster?.simulated || !betaCluster) throw new Error('unreachable');
const withMembers = (...members: LabMember[]): Lab => ({
  organizations: [{ slug: 'physics', name: 'Physics', members }],
});
const job = { id: '42', user: 'ada', name: 'train', machines: ['alpha-1'] };
const lab: Lab = {
  ...physics,
  clusters: [{ ...alphaCluster, simulated: { ...alphaCluster.simulated, runningJobs: [job] } }, betaCluster],
};

test('an installation is exported, planned and applied as a lab file, all of it or nothing', async () => {
  await using service = await startTestApp({ lab });
  const plan = (given: Lab) =>
    service.business('/operator/lab/plan', {
      as: 'root',
      method: 'POST',
      body: { lab: given, prune: false },
    });
  const apply = (given: Lab, prune = false) =>
    service.write('/operator/lab', { as: 'root', body: { lab: given, prune } });
  const exported = async (): Promise<Lab> => (await service.business('/operator/lab', { as: 'root' })).body;
  const done = (reply: { body: { changes: { action: string; name: string }[] } }) =>
    reply.body.changes.map(({ action, name }) => `${action} ${name}`);

  // Links of a cluster can change, which is no new configuration.
  const version = async () =>
    (await requireRow(service.app.store.read, 'clusters', { name: 'alpha' })).desired_generation;
  const alphaOf = (file: Lab) => file.clusters?.find(({ name }) => name === 'alpha');
  const generation = await version();
  const links = [{ name: 'Utilisation', url: 'https://grafana.example.org' }];
  const shown = alphaOf(await exported());
  assert.ok(shown);
  const linked = { clusters: [{ ...shown, links }] };
  assert.deepEqual(done(await apply(linked)), ['update alpha']);
  assert.deepEqual(done(await apply(linked)), []);
  assert.deepEqual([alphaOf(await exported())?.links, await version()], [links, generation]);
  const bad = { clusters: [{ ...shown, links: [{ name: 'x', url: 'javascript:alert(1)' }] }] };
  assert.equal((await apply(bad as Lab)).status, 422);
  assert.deepEqual(done(await apply({ clusters: [{ ...shown, links: [] }] })), ['update alpha']);

  // A plan changes nothing, and is what applying then does.
  const before = await exported();
  const wanted = withMembers(
    { email: 'zoe@physics.example', role: 'member', username: 'zoe', permissions: ['clusters.ssh'] },
    { email: 'eve@physics.example', role: 'admin' },
  );
  const planned = await plan(wanted);
  assert.equal(planned.status, 200, JSON.stringify(planned.body));
  assert.deepEqual(await exported(), before);
  assert.deepEqual(done(planned), [
    'create zoe@physics.example',
    'create physics/zoe@physics.example',
    'update physics/eve@physics.example',
  ]);
  assert.deepEqual(planned.body.restarts, [], 'nobody has a key, so no login account comes or goes');
  const applied = await apply(wanted);
  assert.deepEqual(applied.body, planned.body);
  assert.deepEqual((await apply(wanted)).body.changes, [], 'idempotent');

  // A plan says which accounts come and go, what restarts, and whose jobs end.
  for (const as of ['bob', 'eve'])
    await service.write('/me/ssh-keys', { as, body: { public_key: newPublicKey() } });
  const less = withMembers({ email: 'bob@physics.example', role: 'member', permissions: [] });
  const [{ ended_jobs, ...restart }, ...more] = (await plan(less)).body.restarts;
  assert.deepEqual(more, []);
  assert.deepEqual(restart, {
    ...{ cluster_id: alpha, cluster_name: 'alpha', added: [], removed: ['bob'] },
    restarts: ['login', 'controller', 'accounting', 'compute'],
  });
  // The keys' own restart of the compute nodes may have ended the job by now.
  assert.ok(ended_jobs.length === 0 || ended_jobs[0].id === '42');

  // All of it or nothing.
  const untouched = await exported();
  const impossible: Lab = {
    users: [{ email: 'first@physics.example' }],
    organizations: [{ slug: 'chemistry', name: 'C', autoJoinDomains: ['new.example'] }],
    clusters: [{ ...alphaCluster, scheduler: 'kubernetes' }],
  };
  refused(await apply(impossible), 409, 'invalid_state');
  assert.deepEqual(await exported(), untouched);

  const misshapen = { clusters: [{ name: 'x', organization: 'physics', organisation: 'x' }] };
  refused(await apply(misshapen as Lab), 422, /lab\.clusters\.0\.organisation/);
  assert.equal((await apply({ users: [{ email: 'a@b.c' }, { email: 'A@b.c' }] })).status, 400);

  // Prune takes away members, grants and clusters that the file leaves out.
  await apply({ grants: [{ user: 'guest@y.example', cluster: 'beta', relation: 'kubernetes.viewer' }] });
  const file = await exported();
  const pruned: Lab = {
    ...file,
    grants: [],
    clusters: file.clusters?.filter((cluster) => cluster.name === 'alpha') ?? [],
    organizations:
      file.organizations?.map((organization) => ({
        ...organization,
        members: organization.members?.filter((member) => member.username !== 'zoe') ?? [],
      })) ?? [],
  };
  assert.deepEqual((await apply(pruned)).body.changes, [], 'nothing is removed unless asked for');
  assert.deepEqual(done(await apply(pruned, true)), [
    'remove guest@y.example kubernetes.viewer on beta',
    'remove beta',
    'remove physics/zoe@physics.example',
  ]);
  const clusters = () => service.business('/operator/clusters', { as: 'root' });
  await eventually(clusters, ({ body }) =>
    body.clusters.some((one: Reply['body']) => one.name === 'beta' && one.cluster.state === 'released'),
  );
  assert.deepEqual((await apply(pruned, true)).body.changes, []);

  // The name of a released cluster is free again.
  const { id: _, ...beta } = betaCluster;
  assert.deepEqual(done(await apply({ clusters: [beta] })), ['create beta']);
  const again = await apply({ clusters: [{ ...betaCluster, name: 'delta' }] });
  assert.equal(again.body.code, 'invalid_state', 'an ID never comes back');

  // New settings of a simulated cluster take effect.
  const simulated = { computeNodes: 3, gpusPerNode: 4, applyMs: 20 };
  assert.deepEqual(done(await apply({ clusters: [{ ...alphaCluster, simulated }] })), ['update alpha']);
  const machines = () => service.business(`/operator/clusters/${alpha}/machines`, { as: 'root' });
  await eventually(machines, ({ body }) => body.machines?.length === 3 && body.machines[0].gpu_count === 4);

  // Each step is in the audit trail under the command.
  await apply({ users: [{ email: 'u1@x.example' }, { email: 'u2@x.example' }] });
  const { entries } = (await service.business('/operator/audit?limit=1000', { as: 'root' })).body;
  const [one, two, whole] = entries.slice(-3);
  assert.deepEqual(
    [one.operation, one.target, two.target, whole.operation, whole.details],
    ['operatorApplyLab.person.create', 'u1@x.example', 'u2@x.example', 'operatorApplyLab', '2 changes'],
  );
  assert.equal(new Set([one, two, whole].map((entry) => entry.command_id)).size, 1);
});

test('numbers that an operator gives stay, and no one else gets them', async () => {
  await using service = await startTestApp({ lab });
  const { read } = service.app.store;
  const apply = (...members: LabMember[]) =>
    service.write('/operator/lab', { as: 'root', body: { lab: withMembers(...members) } });
  const numbersOf = async (username: string) => {
    const { uid, gid } = await requireRow(read, 'organization_usernames', { username });
    return [uid, gid];
  };
  const hasNumber = ([uid]: (number | null)[]) => uid !== null;
  await eventually(() => numbersOf('ada'), hasNumber);
  const next = (await requireRow(read, 'counters', { name: 'uid' })).value;
  const member = { role: 'member' as const, permissions: ['clusters.ssh' as const] };
  const zed = { ...member, email: 'zed@physics.example', username: 'zed', uid: next, gid: 100 };
  const yan = { ...member, email: 'yan@physics.example', username: 'yan' };
  const xia = { ...member, email: 'xia@physics.example', username: 'xia' };
  refused(await apply({ ...zed, uid: 0 }), 422, 'invalid_request');
  const applied = await apply(zed, yan, xia);
  assert.match(JSON.stringify(applied.body), new RegExp(`username zed; uid ${next}; gid 100; clusters.ssh`));
  await eventually(() => numbersOf('xia'), hasNumber);
  assert.deepEqual(
    [await numbersOf('zed'), await numbersOf('yan'), await numbersOf('xia')],
    [
      [next, 100],
      [next + 1, null],
      [next + 2, null],
    ],
  );
  assert.deepEqual((await apply(zed, { ...yan, uid: next + 1, gid: next + 1 })).body.changes.length, 1);
  assert.deepEqual((await apply(zed, { ...yan, uid: next + 1, gid: next + 1 })).body.changes, []);
  refused(
    await apply({ ...zed, gid: 101 }),
    409,
    /zed has been on a cluster with the uid \d+ and the gid 100/,
  );
  const vic = { ...member, email: 'vic@physics.example', username: 'vic', uid: next };
  refused(await apply(vic), 409, new RegExp(`The uid ${next} of vic is, or was, that of zed`));
});

test('keys in a lab file are registered once, for one person', async () => {
  await using service = await startTestApp({ lab });
  const apply = (...members: LabMember[]) =>
    service.write('/operator/lab', { as: 'root', body: { lab: withMembers(...members) } });
  const key = `${newPublicKey()} laptop`;
  const bob = { email: 'bob@physics.example', role: 'member' as const, keys: [key] };
  const applied = await apply(bob);
  assert.match(applied.body.changes[0].details, /^keys SHA256:[\w+/]+$/);
  assert.deepEqual((await apply(bob)).body.changes, []);
  const { body } = await service.business('/me/ssh-keys', { as: 'bob' });
  assert.deepEqual(
    body.keys.map(({ label, lifecycle_state: state }: Reply['body']) => [label, state]),
    [['laptop', 'active']],
  );
  await service.write(`/me/ssh-keys/${body.keys[0].id}/revoke`, { as: 'bob' });
  assert.deepEqual((await apply(bob)).body.changes, [], 'a revoked key stays revoked');
  const eve = { ...bob, email: 'eve@physics.example' };
  refused(await apply(eve), 409, /The key SHA256:\S+ of eve@\S+ is, or was, that of bob@physics\.example/);
  const fresh = [newPublicKey()];
  refused(
    await apply({ ...bob, keys: fresh }, { ...eve, keys: fresh }),
    400,
    /bob@\S+ and eve@\S+ have the same/,
  );
  refused(
    await apply({ ...bob, keys: [`from="10.0.0.1" ${newPublicKey()}`] }),
    400,
    /A key of bob@.*Send the key alone/,
  );
});

test('a plan that releases a cluster says whose jobs end with it', async () => {
  await using service = await startTestApp({ lab });
  const clusters = () => service.business('/operator/clusters', { as: 'root' });
  await eventually(clusters, ({ body }) => body.clusters[0].observed_at !== null);
  const wanted = { ...lab, clusters: [betaCluster] };
  const { body } = await service.business('/operator/lab/plan', {
    as: 'root',
    method: 'POST',
    body: { lab: wanted, prune: true },
  });
  const restart = { cluster_id: alpha, cluster_name: 'alpha', added: [], removed: [], restarts: [] };
  assert.deepEqual(body.restarts, [{ ...restart, ended_jobs: [job] }]);
});

test('a grant that ends in a lab file costs as little as one that begins, however many there are', async () => {
  await using store = await openTestStore();
  const people = 200;
  const emailOf = (n: number) => `person-${n}@elsewhere.example`;
  const relation = 'kubernetes.viewer' as const;
  const stepsOf = (action: 'create' | 'remove') =>
    Array.from({ length: people }, (_, n) => {
      const grant = { user: emailOf(n), cluster: 'gamma', relation };
      return { action, kind: 'grant' as const, name: '', details: '', grant };
    });
  let rows = 0;
  const counting = {
    transformQuery: ({ node }: { node: RootOperationNode }) => node,
    transformResult: async ({ result }: { result: QueryResult<UnknownRow> }) => {
      rows += result.rows.length;
      return result;
    },
  };
  await store.write(async (tx) => {
    const createdBy = await createPerson(tx, { email: 'root@elsewhere.example', displayName: 'Root' });
    const made = { slug: 'physics', displayName: 'Physics', autoJoinDomains: [], createdBy };
    const organizationId = await createOrganization(tx, made);
    await createCluster(tx, { name: 'gamma', organizationId, kubernetes: { kubeconfig: '/nowhere' } });
    for (let n = 0; n < people; n++) await createPerson(tx, { email: emailOf(n), displayName: '' });
    const as = { actor: createdBy, commandId: null };
    await takeSteps(tx, stepsOf('create'), as);
    await takeSteps({ ...tx, db: tx.db.withPlugin(counting) }, stepsOf('remove'), as);
    assert.deepEqual(await listAllLiveGrants(tx.db, tx.now), []);
  });
  assert.ok(rows < people * 10, `${rows} rows for ${people} grants`);
});

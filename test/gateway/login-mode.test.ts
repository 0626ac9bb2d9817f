/** Logins to simulated clusters with real ssh: in the login mode `PerUser`, and into a running job. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { LoginNodeReport } from '../../src/domain/access/manifest.ts';
import { createAuthorize } from '../../src/service/compose/gateway.ts';
import { findObservation, recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { setSimulated } from '../platform/support.ts';
import { alpha, becomes, eventually, physics, startTestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { type SshPerson, sshPerson } from '../support/ssh-person.ts';

const perUser = {
  ...physics,
  clusters: (physics.clusters ?? []).map((cluster) =>
    cluster.simulated
      ? { ...cluster, simulated: { ...cluster.simulated, loginMode: 'PerUser' as const } }
      : cluster,
  ),
};

test('PerUser: ssh-access says so, and each person comes to their own login node', async () => {
  // So rarely that only this test reports.
  await using service = await startTestApp({ lab: perUser, sync: { intervalSeconds: 60 } });
  using bob = await sshPerson(service, 'bob');
  assert.equal((await bob.access())['login_mode'], 'PerUser');
  assert.equal((await bob.ssh([bob.target, 'exit 3'])).status, 3);

  const { store } = service.app;
  const observation = await findObservation(store.read, alpha, 'slurm');
  assert.ok(observation);
  const { listVersion } = observation;
  const node = (username: string, port: number, up = true): LoginNodeReport => ({
    name: `login-${username}`,
    host: '127.0.0.1',
    port,
    hostKey: 'ssh-ed25519 AAAA',
    up,
    username,
  });
  const report = (loginNodes: LoginNodeReport[]) => {
    const all = { ...observation.report, listVersion, loginNodes, accounts: [] };
    return recordSlurmReport(store, alpha, all);
  };
  const [fingerprint = ''] = (await bob.access())['key_fingerprints'] as string[];
  const authorize = createAuthorize({ store, graceMs: 0 });
  const decide = () =>
    authorize({ loginName: `${alpha}.bob`, fingerprint, publicKey: '', remoteAddress: '127.0.0.1' });

  // Not to another person’s, even where that is named first.
  await report([node('ada', 1001), node('bob', 1002), node('bobby', 1003)]);
  const decision = await decide();
  assert.equal(decision.allowed && decision.route.loginNode.port, 1002);
  // Whose own is down, or not there yet, is not let in anywhere.
  for (const nodes of [[node('ada', 1001), node('bob', 1002, false)], [node('ada', 1001)], []]) {
    await report(nodes);
    const decision = await decide();
    assert.equal(!decision.allowed && decision.reason, 'gateway_unavailable');
    const access = await bob.access();
    assert.deepEqual([access['ready'], access['reason']], [false, 'gateway_unavailable']);
  }
  // A shared login node is no person’s own where each person has one.
  const { username: _, ...shared } = node('x', 1009);
  await report([shared]);
  assert.equal((await decide()).allowed, false);
});

test('before its cluster has reported, ssh-access says what the settings say', async () => {
  await using service = await startTestApp({ lab: perUser, sync: { intervalSeconds: 60 } });
  using bob = await sshPerson(service, 'bob');
  await service.app.store.write(({ db }) => db.deleteFrom('observations').execute());
  assert.equal((await bob.access())['login_mode'], 'PerUser');
});

const notRoot = process.getuid?.() === 0 ? false : 'a simulated job takes a service that runs as root';
const jobs = [{ id: '4711', user: 'bob', name: 'train', machines: ['alpha-2'] }];

test('into a job of a simulated cluster', { skip: notRoot }, async () => {
  const [cluster, ...others] = physics.clusters ?? [];
  if (!cluster?.simulated) throw new Error('unreachable');
  const simulated = { ...cluster.simulated, runningJobs: jobs, requeue: true };
  const lab = { ...physics, clusters: [{ ...cluster, simulated }, ...others] };
  await using service = await startTestApp({ lab });
  using bob = await sshPerson(service, 'bob');
  using ada = await sshPerson(service, 'ada');
  /** The first name that a client is given counts, and is read when it starts. */
  const named = <T>(person: SshPerson, suffix: string, act: () => T): T => {
    const at = person.options.indexOf('-l') + 1;
    const name = person.options[at] ?? '';
    person.options[at] = `${name}${suffix}`;
    const result = act();
    person.options[at] = name;
    return result;
  };
  const into = (person: SshPerson, suffix: string, command: string, input?: string) =>
    named(person, suffix, () => person.ssh([person.target, command], input));

  // The queue shows who runs what.
  const { out } = await bob.ssh([bob.target, 'squeue; squeue --me -h']);
  assert.match(out, /JOBID NAME +USER +NODELIST\n +4711 train +bob +alpha-2\n +4711 train +bob +alpha-2\n$/);
  assert.equal((await ada.ssh([ada.target, 'squeue --me -h'])).out, '');
  const { status, err } = await bob.ssh([bob.target, 'srun hostname']);
  assert.deepEqual([status, err], [1, 'This cluster is simulated, and starts no jobs.\n']);

  // A command runs in it, with its environment; by its number as well.
  for (const suffix of ['+job', '+4711']) {
    const command = 'echo $SLURM_JOB_ID $SLURM_JOB_NAME $CUDA_VISIBLE_DEVICES; id -un; exit 7';
    const { status, out, err } = await into(bob, suffix, command);
    assert.deepEqual([status, out, err], [7, '4711 train 0,1,2,3,4,5,6,7\nbob\n', '']);
  }

  // The record has the job and node that the cluster reports, and none that start-up files of the account say.
  type Listed = { id: string; job?: string; job_node?: string };
  const listed = async (path: string): Promise<Listed[]> =>
    (await service.business(`/operator/${path}`, { as: 'root' })).body.sessions;
  for (const [forged, job, node] of [
    ['', '4711', 'alpha-2'],
    ["echo 'andromeda-job in 1|alpha-2' >&2"],
    ["echo 'andromeda-job in 4711|alpha-1' >&2"],
  ]) {
    await bob.ssh([bob.target, 'cat > ~/.bashrc'], `${forged}\n`);
    const open = named(bob, '+job', () => bob.start([bob.target, 'echo up; exec cat']));
    assert.equal(await open.said, 'up\n');
    const [session] = await listed('sessions');
    assert.deepEqual([session?.job, session?.job_node], [job, node], forged);
    open.child.stdin?.end();
    await open.ended;
    const past = () => listed('sessions/past');
    const isThere = (all: Listed[]) => all.some(({ id }) => id === session?.id);
    const over = (await eventually(past, isThere)).find(({ id }) => id === session?.id);
    assert.deepEqual([over?.job, over?.job_node], [job, node], forged);
  }
  await bob.ssh([bob.target, 'rm ~/.bashrc']);

  // A megabyte goes there and back.
  const text = randomBytes(2 ** 19).toString('hex');
  assert.equal((await into(bob, '+job', 'cat', text)).out, text);

  // A login without a running job, or into another person’s job, is refused.
  for (const [suffix, words] of [
    ['+job', /You have no job that runs now\./],
    ['+4711', /You have no job 4711 that runs now\./],
  ] as const) {
    fails(await into(ada, suffix, 'true'), 255, words);
  }

  // A session ends with its job, and says how.
  const last = named(bob, '+job', () => bob.start([bob.target, 'echo up; exec sleep 60']));
  assert.equal(await last.said, 'up\n');
  await setSimulated(service, alpha, { runningJobs: [] });
  assert.match((await last.ended).err, /Job 4711 ended \(CANCELLED\)\./);
  await becomes(async () => (await bob.ssh([bob.target, 'squeue -h'])).out, '');
});

/** The login mode `PerUser`: each person has a login node of their own. `Shared` is test/platform/ssh-access.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoginNodeReport } from '../../src/domain/access/manifest.ts';
import { createAuthorize } from '../../src/service/compose/gateway.ts';
import { findObservation, recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { alpha, physics, startTestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';

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

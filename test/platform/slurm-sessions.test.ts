/** What applying a Slurm configuration does to people who are logged in, with a real SSH client and login node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import ssh2 from 'ssh2';
import { alpha, eventually, startTestApp } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';

test('applying a Slurm configuration closes the open SSH sessions on the cluster', async (t) => {
  // So rarely that only the change itself can be what brings it about.
  await using service = await startTestApp({ sync: { intervalSeconds: 60 } });
  const { org_id: org } = (await service.business('/me', { as: 'bob' })).body.memberships[0];
  const key = keygen('-t', 'ed25519');
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: key.publicKey } });
  const access = () => service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' });
  const put = (body: object) =>
    service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`, {
      as: 'ada',
      method: 'PUT',
      body,
    });
  const observedGeneration = async () =>
    (await service.platform(`/clusters/${alpha}/options?businessOrgId=${org}`, { as: 'ada' })).body.scheduler
      .ready?.observedGeneration;
  const observedAt = async () => (await access()).body.observed_at;
  await eventually(access, ({ body }) => body.ready);

  /** A session that runs until somebody ends it. */
  async function openSession() {
    const client = new ssh2.Client();
    const session = { open: true, said: '' };
    await new Promise<void>((done, fail) => {
      client
        .on('ready', done)
        .on('error', fail)
        .connect({
          host: '127.0.0.1',
          port: service.gatewayPort,
          username: `${alpha}.bob`,
          privateKey: key.privateKey,
        });
    });
    t.after(() => client.destroy());
    client.on('error', () => {});
    await new Promise<void>((done, fail) => {
      client.on('close', () => {
        session.open = false;
        fail(new Error('the session was closed'));
      });
      client.exec('echo here; sleep 60', (error, stream) => {
        if (error) return fail(error);
        stream.on('data', () => done());
        stream.stderr.on('data', (part: Buffer) => {
          session.said += part;
        });
      });
    });
    return session;
  }

  await t.test('a change: the session ends, and the person gets the reason', async () => {
    const session = await openSession();
    await put({ slurmExtraConfig: 'MaxArraySize=2000' });
    await eventually(
      async () => session.open,
      (open) => !open,
    );
    assert.match(session.said, /login node is restarting/);
    await eventually(observedGeneration, (generation) => generation === 2);
    await eventually(access, ({ body }) => body.ready);
  });

  await t.test('an identical body changes nothing: the session stays', async () => {
    const session = await openSession();
    await put({ slurmExtraConfig: 'MaxArraySize=2000' });
    const seen = await observedAt();
    await service.app.store.write(async ({ changed }) => changed({ kind: 'cluster', clusterId: alpha }));
    await eventually(observedAt, (at) => at > seen);
    await sleep(200);
    assert.equal(session.open, true);
    assert.equal(await observedGeneration(), 2);
  });
});

/** What applying a Slurm configuration does to people who are logged in, with a real SSH client and login node. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { alpha, eventually, startTestApp } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';

test('applying a Slurm configuration ends the open SSH sessions on the cluster, and says why', async () => {
  // So rarely that only the change itself can be what brings it about.
  await using service = await startTestApp({ sync: { intervalSeconds: 60 } });
  const { org_id: org } = (await service.business('/me', { as: 'bob' })).body.memberships[0];
  const key = keygen('-t', 'ed25519');
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: key.publicKey } });
  const access = () => service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' });
  await eventually(access, ({ body }) => body.ready);

  const client = new ssh2.Client();
  using closing = new DisposableStack();
  closing.defer(() => client.destroy());
  const login = { username: `${alpha}.bob`, privateKey: key.privateKey };
  client.connect({ host: '127.0.0.1', port: service.gatewayPort, ...login });
  await once(client, 'ready');
  client.on('error', () => {});
  const closed = once(client, 'close');
  const shell = promisify(client.exec.bind(client)) as (command: string) => Promise<ssh2.ClientChannel>;
  const stream = await shell('echo here; sleep 60');
  let said = '';
  stream.stderr.on('data', (part: Buffer) => {
    said += part;
  });
  await once(stream, 'data');
  await service.platform(`/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`, {
    as: 'ada',
    method: 'PUT',
    body: { slurmExtraConfig: 'MaxArraySize=2000' },
  });
  await closed;
  assert.match(said, /login node is restarting/);
  await eventually(access, ({ body }) => body.ready && body.observation_current);
});

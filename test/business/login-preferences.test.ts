import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, eventually, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';

test('a login shell is set, reaches the cluster, and changes nothing else of the account; what cannot be one is refused', async () => {
  await using service = await startTestApp();
  const put = (shell: unknown) => service.put('ada', '/me/login-preferences', { shell });
  const me = async () => (await service.business('/me', { as: 'ada' })).body;
  const org: string = (await me()).default_org_id;
  const list = async () =>
    (await service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' })).body;
  const ssh = async () =>
    (await service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'ada' })).body;
  const controls = ['ba\nsh', '\u007f', 'a:b', '\u202ehsz', 'a\u2028b', '\u200bsh'].map(
    (name) => `/bin/${name}`,
  );
  for (const shell of ['', 'bash', './bash', ...controls, '/usr/sbin/nologin', `/${'x'.repeat(255)}`])
    refused(await put(shell), 400, 'invalid_request');
  assert.equal((await put(7)).status, 422);

  const before = await eventually(list, ({ state }) => state === 'converged');
  const { status, body } = await put('/bin/zsh');
  assert.deepEqual([status, body.shell, (await me()).user.login_shell], [200, '/bin/zsh', '/bin/zsh']);
  assert.match(body.command_id, /^command_/);
  await eventually(ssh, ({ shell, observation_current: current }) => current && shell === '/bin/zsh');
  const allocation = (users: { username: string; allocation: object }[]) =>
    users.find(({ username }) => username === 'ada')?.allocation;
  const after = allocation((await list()).users);
  assert.deepEqual(after, { ...allocation(before.users), shell: '/bin/zsh' });
});

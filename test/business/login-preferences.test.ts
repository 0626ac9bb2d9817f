import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, eventually, startTestApp } from '../support/app.ts';

test('PUT /me/login-preferences', async (t) => {
  await using service = await startTestApp();
  const put = (shell: unknown) =>
    service.write('/me/login-preferences', { as: 'ada', method: 'PUT', body: { shell } });
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const list = async () =>
    (await service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' })).body;
  const ssh = async () =>
    (await service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'ada' })).body;

  await t.test('a shell that cannot be one is refused', async () => {
    const controls = [
      '/bin/ba\nsh',
      '/bin/\u007f',
      '/bin/a:b',
      '/bin/\u202ehsz',
      '/bin/a\u2028b',
      '/bin/\u200bsh',
    ];
    for (const shell of ['', 'bash', './bash', ...controls, '/usr/sbin/nologin', `/${'x'.repeat(255)}`]) {
      const { status, body } = await put(shell);
      assert.deepEqual([status, body.code], [400, 'invalid_request'], JSON.stringify(shell));
    }
    assert.equal((await put(7)).status, 422);
  });

  await t.test('the shell is set, reaches the cluster, and nothing else of the account changes', async () => {
    const before = await eventually(list, ({ state }) => state === 'converged');
    const { status, body } = await put('/bin/zsh');
    assert.equal(status, 200);
    assert.equal(body.shell, '/bin/zsh');
    assert.match(body.command_id, /^command_/);
    assert.equal((await service.business('/me', { as: 'ada' })).body.user.login_shell, '/bin/zsh');
    const access = await eventually(
      ssh,
      ({ shell, observation_current }) => observation_current && shell === '/bin/zsh',
    );
    assert.equal(access.username, 'ada');
    const after = await list();
    const allocation = (users: { username: string; allocation: object }[]) =>
      users.find(({ username }) => username === 'ada')?.allocation;
    assert.deepEqual(allocation(after.users), { ...allocation(before.users), shell: '/bin/zsh' });
  });
});

/** What people write of their own: how much in a day, as each of it is kept, and their login preferences. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forbidden } from '../../src/domain/error.ts';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import { ownWrites, runCommand } from '../../src/store/audit/commands.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { alpha, eventually, physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, userId } from '../support/store.ts';
import { rows } from './writes-table.ts';

const dayMs = 86_400_000;

test('what a member of no further permissions may write has a share a day', () => {
  const own = Object.entries(rows).filter(([, row]) => row.may.includes('bob') && !row.writesNothing);
  const all = [...ownWrites, 'registerSshKeyForOrganization'];
  assert.deepEqual(own.map(([operation]) => operation).sort(), all.sort());
});

test('after a thousand own changes within a day, another is possible when one of them is a day old, and taking away always', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { body } = await service.business('/me', { as: 'bob' });
  const { id } = body.user;
  const org = body.default_org_id;
  const addKey = () => service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const { body: made } = await addKey();
  const wish = { as: 'bob', body: { permissions: ['reservations.read'] } };
  const asked = await service.write(`/organizations/${org}/access-requests`, wish);
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  const entry = { actorUserId: id, target: id, reason: '', subjectUserId: id };
  const rename = (times: number) =>
    service.app.store.write(async (tx) => {
      for (let count = 0; count < times; count++)
        await appendAuditEntry(tx, { ...entry, operation: 'renameSshKey', result: 'done' });
    });
  await rename(2);
  service.advance(3_600_000);
  await rename(995);
  await service.app.store.write(async (tx) => {
    // None of these counts.
    for (let count = 0; count < 20; count++) {
      await appendAuditEntry(tx, { ...entry, operation: 'renameSshKey', result: 'refused: forbidden' });
      await appendAuditEntry(tx, { ...entry, operation: 'ssh.session.opened', result: 'done' });
    }
  });
  const setShell = (shell: string, as = 'bob') => service.put(as, '/me/login-preferences', { shell });
  assert.equal((await setShell('/bin/sh')).status, 200);
  const { read } = service.app.store;
  const entries = async () => (await listRows(read, 'audit_entries', {})).length;
  const before = await entries();
  const beyond = await setShell('/bin/bash');
  const message =
    /^You have changed your keys, your shell and your requests 1000 times within a day\. It is possible again at \d{4}-\d\d-\d\d \d\d:\d\d UTC; revoking and withdrawing always are\.$/;
  refused(beyond, 429, 'too_many_requests', message);
  assert.equal(beyond.body.retryable, true);
  const wait = Number(beyond.headers.get('retry-after'));
  assert.ok(wait > 22.9 * 3_600 && wait <= 23 * 3_600, String(wait));
  refused(await addKey(), 429, 'too_many_requests');
  assert.equal(await entries(), before, 'a refusal is kept nowhere but in the log');

  // Others go on, and so does what takes access away.
  assert.equal((await setShell('/bin/sh', 'ada')).status, 200);
  const revoked = await service.write(`/me/ssh-keys/${made.ssh_key.id}/revoke`, { as: 'bob' });
  assert.equal(revoked.status, 200);
  const withdrawn = await service.write(`/me/access-requests/${asked.body.id}/withdraw`, { as: 'bob' });
  assert.equal(withdrawn.status, 200);
  // A second time they take nothing away.
  for (const path of [`ssh-keys/${made.ssh_key.id}/revoke`, `access-requests/${asked.body.id}/withdraw`])
    assert.equal((await service.write(`/me/${path}`, { as: 'bob' })).status, 429, path);

  service.advance(wait * 1000);
  // The registration, the request and two names are a day old; the revocation and the withdrawal count.
  assert.equal((await setShell('/bin/bash')).status, 200);
  assert.equal((await setShell('/bin/sh')).status, 200);
  assert.equal((await setShell('/bin/bash')).status, 429);
  service.advance(dayMs);
  assert.equal((await setShell('/bin/bash')).status, 200);
});

test('of a thousand refusals within a day each has an entry, and all beyond are counted', async () => {
  await using store = await openTestStore(physics);
  const bob = await userId(store, 'bob@physics.example');
  const start = Date.parse('2030-01-01T00:00:00.000Z');
  const caller = { userId: bob, sourceAddress: '' };
  const command = { idempotencyKey: 'x', auditReason: 'r' };
  const apply = () => Promise.reject(forbidden('no'));
  const refuse = (now: number) => {
    const what = { operation: 'x', meaning: [], about: { target: 't' }, apply };
    return assert.rejects(runCommand(store, { caller, command, now }, what));
  };
  const entries = async (operation: string) =>
    (await listRows(store.read, 'audit_entries', { operation })).length;
  for (let minute = 0; minute < 20; minute++)
    for (let count = 0; count < 60; count++) await refuse(start + minute * 60_000);
  assert.equal(await entries('x'), 1_000);
  await refuse(start + 30 * 60_000);
  assert.deepEqual([await entries('x'), await entries('furtherRefusals')], [1_000, 4]);
  await refuse(start + dayMs);
  assert.equal(await entries('x'), 1_001);
});

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

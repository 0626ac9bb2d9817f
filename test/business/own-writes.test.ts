/** How much anyone may write in a day: each of it is kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import { ownWrites } from '../../src/store/audit/commands.ts';
import { physics, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { rows } from './writes-table.ts';

const dayMs = 86_400_000;

test('what a member of no further permissions may write has a share a day, or takes something away', () => {
  const own = Object.entries(rows).filter(([, row]) => row.may.includes('bob') && !row.writesNothing);
  const taking = ['closeMySession', 'registerSshKeyForOrganization', 'revokeSshKey', 'withdrawAccessRequest'];
  assert.deepEqual(own.map(([operation]) => operation).sort(), [...ownWrites, ...taking].sort());
});

test('after a thousand own changes within a day, another is possible when one of them is a day old, and taking away always', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { body } = await service.business('/me', { as: 'bob' });
  const { id } = body.user;
  const org = body.default_org_id;
  const { body: made } = await service.write('/me/ssh-keys', {
    as: 'bob',
    body: { public_key: newPublicKey() },
  });
  const asked = await service.write(`/organizations/${org}/access-requests`, {
    as: 'bob',
    body: { permissions: ['reservations.read'] },
  });
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  service.advance(3_600_000);
  const entry = { actorUserId: id, target: id, reason: '', subjectUserId: id };
  await service.app.store.write(async (tx) => {
    for (let count = 0; count < 997; count++)
      await appendAuditEntry(tx, { ...entry, operation: 'renameSshKey', result: 'done' });
    // None of these counts.
    for (let count = 0; count < 20; count++) {
      await appendAuditEntry(tx, { ...entry, operation: 'renameSshKey', result: 'refused: forbidden' });
      await appendAuditEntry(tx, { ...entry, operation: 'ssh.session.opened', result: 'done' });
    }
  });
  const setShell = (shell: string, as = 'bob') =>
    service.write('/me/login-preferences', { as, method: 'PUT', body: { shell } });
  assert.equal((await setShell('/bin/sh')).status, 200);
  const { read } = service.app.store;
  const entries = async () => (await read.selectFrom('audit_entries').select('seq').execute()).length;
  const before = await entries();
  const refused = await setShell('/bin/bash');
  assert.deepEqual(
    [refused.status, refused.body.code, refused.body.retryable],
    [429, 'too_many_requests', true],
  );
  assert.match(
    refused.body.message,
    /^You have changed your keys, your shell and your requests 1000 times within a day\. It is possible again at \d{4}-\d\d-\d\d \d\d:\d\d UTC; revoking and withdrawing always are\.$/,
  );
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait > 22.9 * 3_600 && wait <= 23 * 3_600, String(wait));
  const key = await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  assert.deepEqual([key.status, key.body.code], [429, 'too_many_requests']);
  assert.equal(await entries(), before, 'a refusal is kept nowhere but in the log');

  // Others go on, and so does what takes access away.
  assert.equal((await setShell('/bin/sh', 'ada')).status, 200);
  const revoked = await service.write(`/me/ssh-keys/${made.ssh_key.id}/revoke`, { as: 'bob' });
  assert.equal(revoked.status, 200);
  const withdrawn = await service.write(`/me/access-requests/${asked.body.id}/withdraw`, { as: 'bob' });
  assert.equal(withdrawn.status, 200);

  service.advance(wait * 1000);
  // The registration and the request are a day old.
  assert.equal((await setShell('/bin/bash')).status, 200);
  assert.equal((await setShell('/bin/sh')).status, 200);
  assert.equal((await setShell('/bin/bash')).status, 429);
  service.advance(dayMs);
  assert.equal((await setShell('/bin/bash')).status, 200);
});

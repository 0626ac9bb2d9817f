import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestApp } from '../support/app.ts';

test('GET /me', async (t) => {
  await using service = await startTestApp();

  await t.test('returns the person, their memberships and the only organization as default', async () => {
    const { status, body } = await service.business('/me', { as: 'ada' });
    assert.equal(status, 200);
    assert.equal(body.user.primary_email, 'ada@physics.example');
    assert.equal(body.user.login_shell, '/bin/bash');
    assert.equal(body.user.lifecycle_state, 'active');
    assert.equal(body.memberships.length, 1);
    assert.equal(body.memberships[0].role, 'owner');
    assert.equal(body.memberships[0].organization_username.username, 'ada');
    assert.equal(body.default_org_id, body.memberships[0].org_id);
    assert.deepEqual(body.staff_keys, []);
  });
});

/** What holds whatever a caller forgets: the store asks the domain at every change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import {
  createMembership,
  removeMembership,
  updateMemberRole,
} from '../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug, retireOrganization } from '../../src/store/organizations/organizations.ts';
import { updateLifecycle, updateStaffKeys } from '../../src/store/people/people.ts';
import { createSshKey, listSshKeys } from '../../src/store/people/ssh-keys.ts';
import { physics } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { openTestStore, userId } from '../support/store.ts';

test('the last owner stays: no change of a role or a membership takes them away', async () => {
  await using store = await openTestStore({ ...physics, clusters: [] });
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const ada = await userId(store, 'ada@physics.example');
  const bob = await userId(store, 'bob@physics.example');
  const last = /This is the last owner/;
  await assert.rejects(
    store.write((tx) => removeMembership(tx, { organizationId, userId: ada })),
    last,
  );
  await assert.rejects(
    store.write((tx) => updateMemberRole(tx, { organizationId, userId: ada, role: 'admin' })),
    last,
  );
  await store.write((tx) => updateMemberRole(tx, { organizationId, userId: bob, role: 'owner' }));
  await store.write((tx) => removeMembership(tx, { organizationId, userId: ada }));
  await assert.rejects(
    store.write((tx) => removeMembership(tx, { organizationId, userId: bob })),
    last,
  );
  await store.write((tx) => retireOrganization(tx, organizationId));
  await store.write((tx) => removeMembership(tx, { organizationId, userId: bob }));
});

test('a username is one person’s for good, and only once', async () => {
  await using store = await openTestStore(physics);
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const root = await userId(store, 'root@physics.example');
  const join = (username: string) =>
    store.write((tx) =>
      createMembership(tx, {
        organizationId,
        userId: root,
        email: 'root@physics.example',
        role: 'member',
        username,
      }),
    );
  await assert.rejects(join('ada'), /is, or was, another person's here/);
  await assert.rejects(join('Root!'), /cannot be a username/);
  await join('superuser');
});

test('the last operator stays: neither without the key nor deactivated', async () => {
  await using store = await openTestStore(physics);
  const root = await userId(store, 'root@physics.example');
  const last = /This is the last person with staff\.operate/;
  await assert.rejects(
    store.write((tx) => updateStaffKeys(tx, { userId: root, keys: [] })),
    last,
  );
  await assert.rejects(
    store.write((tx) => updateLifecycle(tx, { userId: root, state: 'deactivated' })),
    last,
  );
});

test('a write has the time of its transaction', async () => {
  await using store = await openTestStore(physics);
  const ada = await userId(store, 'ada@physics.example');
  const key = parseSshPublicKey(newPublicKey());
  const now = Date.parse('2030-01-01T00:00:00.000Z');
  await store.write((tx) => createSshKey({ ...tx, now }, { userId: ada, key, commandId: 'c' }));
  const [made] = await listSshKeys(store.read, ada);
  assert.equal(made?.createdAt, '2030-01-01T00:00:00.000Z');
});

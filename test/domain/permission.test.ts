import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  effectivePermissions,
  isPermissionKey,
  keysIncluding,
  type PermissionKey,
  permissionCatalog,
} from '../../src/domain/access/permission.ts';

const everyKey = [
  'clusters.configure',
  'clusters.kubernetes',
  'clusters.kubernetes.admin',
  'clusters.read',
  'clusters.ssh',
  'clusters.ssh.admin',
  'members.manage',
  'reservations.read',
];

const inclusions: [PermissionKey, string[]][] = [
  ['clusters.read', ['clusters.read']],
  ['clusters.ssh', ['clusters.ssh']],
  ['clusters.ssh.admin', ['clusters.ssh', 'clusters.ssh.admin']],
  ['clusters.kubernetes', ['clusters.kubernetes']],
  ['clusters.kubernetes.admin', ['clusters.kubernetes', 'clusters.kubernetes.admin']],
  ['clusters.configure', ['clusters.configure', 'clusters.ssh', 'clusters.ssh.admin']],
  ['members.manage', ['members.manage']],
  ['reservations.read', ['reservations.read']],
];

for (const [key, held] of inclusions) {
  test(`a member granted ${key} holds ${held.join(', ')}`, () => {
    assert.deepEqual([...effectivePermissions('member', [key])].sort(), held);
  });
}

test('every key of the contract can be granted, and no other', () => {
  assert.deepEqual(permissionCatalog.map(({ key }) => key).sort(), everyKey);
  for (const key of ['organization.owner', 'organization.admin', 'clusters', 'clusters.*', '', '__proto__']) {
    assert.equal(isPermissionKey(key), false, key);
  }
});

test('no permission includes clusters.read', () => {
  assert.deepEqual(keysIncluding('clusters.read'), ['clusters.read']);
});

test('a new member has no permission', () => {
  assert.deepEqual([...effectivePermissions('member', [])], []);
});

test('an owner and an admin hold every key, whatever is granted', () => {
  for (const role of ['owner', 'admin'] as const) {
    assert.deepEqual([...effectivePermissions(role, [])].sort(), everyKey);
  }
});

test('clusters.ssh is held through each key that includes it', () => {
  assert.deepEqual(keysIncluding('clusters.ssh').sort(), [
    'clusters.configure',
    'clusters.ssh',
    'clusters.ssh.admin',
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWiderRole } from '../../src/domain/access/grant.ts';
import {
  effectivePermissions,
  isPermissionKey,
  keysIncluding,
  type PermissionKey,
  permissionCatalog,
} from '../../src/domain/access/permission.ts';
import { checkLab } from '../../src/domain/clusters/lab.ts';

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

const rows: [
  relation: 'viewer' | 'developer' | 'admin',
  namespace: string | undefined,
  role: string,
  wider: boolean,
][] = [
  ['viewer', undefined, 'view', false],
  ['viewer', 'team-a', 'edit', true],
  ['viewer', undefined, 'cluster-admin', true],
  ['developer', 'team-a', 'view', false],
  ['developer', 'team-a', 'trainers', false],
  ['developer', 'team-a', 'admin', true],
  ['admin', 'team-a', 'admin', false],
  ['admin', 'team-a', 'cluster-admin', true],
  ['admin', undefined, 'cluster-admin', false],
];
for (const [relation, namespace, roleId, wider] of rows) {
  test(`${relation} in ${namespace ?? 'the whole cluster'} with the role ${roleId}: ${wider ? 'more' : 'no more'} than the relation`, () => {
    assert.equal(isWiderRole({ relation: `kubernetes.${relation}`, namespace, roleId }), wider);
  });
}

test('a lab file with a role above its relation is refused, unless it says that it is meant', () => {
  const grant = {
    user: 'eve@x.example',
    cluster: 'alpha',
    relation: 'kubernetes.viewer',
    roleId: 'cluster-admin',
  } as const;
  assert.throws(
    () => checkLab({ grants: [grant] }),
    /cluster-admin gives more than that.*allowWiderRole: true/,
  );
  checkLab({ grants: [{ ...grant, allowWiderRole: true }] });
});

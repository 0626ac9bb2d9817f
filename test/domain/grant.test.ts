/** A grant's role narrows its relation; one that is known to give more has to be meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWiderRole } from '../../src/domain/access/grant.ts';
import { checkLab } from '../../src/domain/clusters/lab.ts';

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

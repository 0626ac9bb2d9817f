import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permissionCatalog } from '../../src/domain/access/permission.ts';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { applyGroups } from '../../src/store/organizations/apply-groups.ts';
import { createMembership } from '../../src/store/organizations/membership-changes.ts';
import { listAllGrantedPermissions } from '../../src/store/organizations/memberships.ts';
import { createOrganization } from '../../src/store/organizations/organizations.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { openTestStore } from '../support/store.ts';

test('the list of what everybody was granted is whole, wherever its pages end', async () => {
  await using store = await openTestStore();
  const keys = permissionCatalog.map(({ key }) => key).toSorted();
  const wanted = new Map<string, string[]>();
  const organizationId = await store.write(async (tx) => {
    const createdBy = await createPerson(tx, { email: 'ada@physics.example', displayName: 'Ada' });
    const id = await createOrganization(tx, {
      ...{ slug: 'physics', displayName: 'Physics', autoJoinDomains: [], createdBy },
    });
    for (let count = 0; count < 300; count += 1) {
      const email = `person-${count}@physics.example`;
      const userId = await createPerson(tx, { email, displayName: email });
      const held = keys.slice(0, count % (keys.length + 1));
      const permissions = held.map((key) => ({ key, expiresAt: null }));
      await createMembership(tx, {
        ...{ organizationId: id, userId, email, role: 'member', username: `person-${count}`, permissions },
      });
      // Rules give every other one of them the same, which is in the list once.
      const rule = { group: 'all', organization: 'physics', role: 'member', permissions: held } as GroupRule;
      if (count % 2 === 0) await applyGroups(tx, { userId, email }, [rule], ['all']);
      if (held.length > 0) wanted.set(userId, held);
    }
    return id;
  });
  const found = await listAllGrantedPermissions(store.read, organizationId, Date.now());
  const keysOf = [...found].map(([userId, held]) => [userId, held.map(({ key }) => key)] as const);
  assert.deepEqual(new Map(keysOf), wanted);
});

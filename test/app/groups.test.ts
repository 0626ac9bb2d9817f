import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { GroupRule } from '../../src/domain/organizations/group-rules.ts';
import { createLogger } from '../../src/lib/log.ts';
import { applyGroupRules } from '../../src/service/compose/group-rules.ts';
import { checkOrganizations } from '../../src/service/config/groups.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { listRows, updateRows } from '../../src/store/engine/rows.ts';
import { findMembership } from '../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug, listSlugs } from '../../src/store/organizations/organizations.ts';
import { saveGroups } from '../../src/store/people/groups.ts';
import { findPersonByEmail, updateLifecycle } from '../../src/store/people/people.ts';
import { becomes, physics, startTestApp } from '../support/app.ts';
import { openTestStore } from '../support/store.ts';

const claim = { issuer: 'https://login.physics.example', claim: 'groups' };
const ssh: GroupRule = {
  group: 'physics-gpu',
  organization: 'physics',
  role: 'member',
  permissions: ['clusters.ssh'],
};
const read: GroupRule = { ...ssh, permissions: ['clusters.read'] };
const lab = { ...physics, users: [...(physics.users ?? []), { email: 'zoe@physics.example' }] };

/** Starts a server with these rules, undefined: without `identity.groups`, until it has applied them. */
async function startWith(store: Store, rules: readonly GroupRule[] | undefined, source = claim) {
  const groups = rules && { source, rules };
  const lines: string[] = [];
  const log = createLogger('debug', (line) => lines.push(line));
  const stop = applyGroupRules({ store, groups, log });
  await becomes(() => lines.some((line) => line.includes('groups.applied')), true);
  await stop();
}

async function personOf(store: Store, name: string) {
  const person = await findPersonByEmail(store.read, `${name}@physics.example`);
  const organization = await findOrganizationBySlug(store.read, 'physics');
  if (!person || !organization) throw new Error('the lab has both');
  return { userId: person.id, organizationId: organization.id };
}

async function permissionsOf(store: Store, name: string): Promise<string[] | undefined> {
  const { userId, organizationId } = await personOf(store, name);
  const held = await findMembership(store.read, organizationId, userId, Date.now());
  return held?.granted.map(({ key }) => key);
}

async function entries(store: Store) {
  const rows = await listRows(store.read, 'audit_entries', { operation: 'followGroups' }, 'seq');
  return rows.map(({ reason, details }) => ({ reason, details }));
}

async function say(store: Store, name: string, groups: string[]) {
  const { userId } = await personOf(store, name);
  await store.write((tx) => saveGroups(tx, userId, claim, { groups, tokenAt: tx.now }));
}

test('rules that changed are applied at the start to everyone of whom groups are known, once', async () => {
  await using store = await openTestStore(lab);
  await say(store, 'zoe', ['physics-gpu']);
  await say(store, 'eve', ['other']);
  await startWith(store, [ssh]);
  assert.deepEqual(await permissionsOf(store, 'zoe'), ['clusters.ssh']);
  assert.deepEqual(await permissionsOf(store, 'eve'), []);
  await startWith(store, [ssh]);
  assert.equal((await entries(store)).length, 1);
  await startWith(store, [read]);
  assert.deepEqual(await permissionsOf(store, 'zoe'), ['clusters.read']);
  assert.deepEqual((await entries(store)).at(-1), {
    reason: 'group physics-gpu at the issuer',
    details: '+clusters.read, -clusters.ssh',
  });
});

test('without rules, or without the setting, what rules gave is taken away at the start', async () => {
  await using store = await openTestStore(lab);
  for (const none of [[], undefined]) {
    await say(store, 'zoe', ['physics-gpu']);
    await startWith(store, [ssh]);
    assert.deepEqual(await permissionsOf(store, 'zoe'), ['clusters.ssh']);
    await startWith(store, none);
    assert.equal(await permissionsOf(store, 'zoe'), undefined);
  }
});

test('with another issuer, what rules gave for a group stays until a token of that one says otherwise', async () => {
  await using store = await openTestStore(lab);
  await say(store, 'zoe', ['physics-gpu', 'physics-kube']);
  await startWith(store, [ssh]);
  const other = { ...claim, issuer: 'https://sso.physics.example' };
  const kube: GroupRule = { ...ssh, group: 'physics-kube', permissions: ['clusters.kubernetes'] };
  await startWith(store, [ssh, kube], other);
  assert.deepEqual(await permissionsOf(store, 'zoe'), ['clusters.ssh']);
});

test('a person whose rules cannot be applied keeps no other waiting, and is tried again', async () => {
  await using store = await openTestStore(lab);
  const { userId } = await personOf(store, 'eve');
  for (const name of ['eve', 'zoe']) await say(store, name, ['physics-gpu']);
  await startWith(store, [ssh]);
  const run = (statement: string) => store.write(({ db }) => sql.raw(statement).execute(db));
  await run(
    `create trigger refuse before insert on holdings when new.user_id = '${userId}' begin select raise(abort, 'no'); end`,
  );
  await startWith(store, [read]);
  assert.deepEqual(await permissionsOf(store, 'eve'), ['clusters.ssh']);
  assert.deepEqual(await permissionsOf(store, 'zoe'), ['clusters.read']);
  await run('drop trigger refuse');
  await startWith(store, [read]);
  assert.deepEqual(await permissionsOf(store, 'eve'), ['clusters.read']);
});

test('a deactivated person gets nothing from rules', async () => {
  await using store = await openTestStore(lab);
  const { userId } = await personOf(store, 'zoe');
  await say(store, 'zoe', ['physics-gpu']);
  await store.write((tx) => updateLifecycle(tx, { userId, state: 'deactivated' }));
  await startWith(store, [ssh]);
  assert.equal(await permissionsOf(store, 'zoe'), undefined);
});

test('a rule for an organization that is not there refuses the start, and one that is retired gives nothing', async () => {
  await using store = await openTestStore(lab);
  const rules = [ssh, { ...ssh, organization: 'phsyics' }];
  const slugs = await listSlugs(store.read);
  assert.throws(() => checkOrganizations({ source: claim, rules }, slugs), {
    code: 'invalid_request',
    message: /identity\.groups\.rules\[1\]\.organization: there is no organization phsyics\./,
  });
  await assert.rejects(
    startTestApp({
      lab,
      identity: { groups: { claim: 'groups', rules: [{ group: 'a', organization: 'b' }] } },
    }),
    /there is no organization b\./,
  );
  await store.write(({ db }) =>
    updateRows(db, 'organizations', { slug: 'physics' }, { lifecycle_state: 'retired' }),
  );
  checkOrganizations({ source: claim, rules: [ssh] }, await listSlugs(store.read));
  await say(store, 'zoe', ['physics-gpu']);
  await startWith(store, [ssh]);
  assert.equal(await permissionsOf(store, 'zoe'), undefined);
});

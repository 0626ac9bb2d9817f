/** Teams: groups on an organization's Slurm clusters, by its owners and by a lab file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab, LabGroup } from '../../src/domain/clusters/lab.ts';
import { findManifest } from '../../src/store/access/access-lists.ts';
import { alpha, becomes, physics, startTestApp } from '../support/app.ts';
import { refused } from '../support/refused.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { requireRow } from '../support/store.ts';

const ofPhysics = (groups: LabGroup[]): Lab => ({
  organizations: [{ slug: 'physics', name: 'Physics', groups }],
});

test('owners make teams, which have a number for good and members of the organization', async () => {
  await using service = await startTestApp({ lab: physics });
  const { store } = service.app;
  const { id: org } = await requireRow(store.read, 'organizations', { slug: 'physics' });
  const idOf = async (name: string) =>
    (await requireRow(store.read, 'users', { primary_email: `${name}@physics.example` })).id;
  const set = async (as: string, team: string, ...names: string[]) =>
    service.put(as, `/organizations/${org}/teams/${team}`, { members: await Promise.all(names.map(idOf)) });
  const groups = async () => {
    const manifest = await findManifest(store, alpha);
    return manifest?.groups?.map(({ name, gid, members }) => [name, gid, members.join()]);
  };
  for (const as of ['ada', 'bob'])
    await service.write('/me/ssh-keys', { as, body: { public_key: newPublicKey() } });
  const ready = async () =>
    (await findManifest(store, alpha))?.accounts.filter(({ loginState }) => loginState === 'ready').length;
  await becomes(ready, 2);
  assert.deepEqual(await groups(), [], 'there are none before somebody makes one');
  const generation = async () =>
    (await requireRow(store.read, 'access_lists', { cluster_id: alpha })).generation;

  const before = await generation();
  const { body: made } = await set('ada', 'vision', 'bob', 'eve');
  const { gid } = made;
  const members = ['bob', 'eve'].map((username) => ({ email: `${username}@physics.example`, username }));
  const shown = made.members.map(({ user_id: _, ...member }: { user_id: string }) => member);
  assert.deepEqual([made.name, made.everyone, shown], ['vision', false, members]);
  assert.deepEqual(
    await groups(),
    [
      ['physics', gid + 1, 'ada,bob'],
      ['vision', gid, 'bob'],
    ],
    'eve has no account there',
  );
  assert.equal(await generation(), before + 1);
  await set('ada', 'vision', 'eve', 'bob');
  assert.equal(await generation(), before + 1, 'the same members are no change');

  refused(await set('bob', 'speech'), 403, 'forbidden');
  refused(await set('ada', 'physics', 'bob'), 409, /Everyone in the organization is in physics/);
  refused(await set('ada', 'speech', 'root'), 409, /members of its organization only/);
  refused(await set('ada', 'bob'), 409, /The name bob is, or was, a person's here/);
  for (const name of ['docker', 'wheel', 'Vision', 'a'.repeat(33)])
    refused(await set('ada', name), 400, /cannot be a team/);
  const named = { email: 'vision@physics.example' };
  const { body: vision } = await service.write(`/organizations/${org}/members`, { as: 'ada', body: named });
  assert.equal(vision.organization_username.username, 'vision2', 'a person does not get the name of a team');

  // A member who leaves is in no team, also when they come back.
  await service.write(`/organizations/${org}/members/${await idOf('bob')}/remove`, { as: 'ada' });
  await service.write(`/organizations/${org}/members`, { as: 'ada', body: { email: 'bob@physics.example' } });
  const listed = await service.business(`/organizations/${org}/teams`, { as: 'eve' });
  assert.deepEqual(
    listed.body.teams[1].members.map(({ username }: { username: string }) => username),
    ['eve'],
  );

  const remove = (team: string) => service.write(`/organizations/${org}/teams/${team}/remove`, { as: 'ada' });
  refused(await remove('physics'), 409, /stays/);
  assert.deepEqual((await remove('vision')).body, { name: 'vision' });
  refused(await remove('vision'), 404, 'not_found');
  assert.deepEqual(
    (await groups())?.map(([name]) => name),
    ['physics'],
  );
  assert.equal((await set('ada', 'speech')).body.gid > gid + 1, true, 'its number is not given again');
  assert.equal((await set('ada', 'vision')).body.gid, gid, 'a team that comes back has it');
});

test('a lab file has teams with given numbers', async () => {
  await using service = await startTestApp({ lab: physics });
  const { store } = service.app;
  const apply = (lab: Lab, prune = false) =>
    service.write('/operator/lab', { as: 'root', body: { lab, prune } });
  const exported = async (): Promise<Lab> => (await service.business('/operator/lab', { as: 'root' })).body;
  const steps = async (lab: Lab, prune = false) =>
    (await apply(lab, prune)).body.changes.map((one: Record<string, string>) => Object.values(one).join(' '));
  const groupsOf = ({ organizations = [] }: Lab) => organizations[0]?.groups;

  const bob = 'bob@physics.example';
  const wanted = ofPhysics([
    { name: 'vision', gid: 5_003, members: [bob] },
    { name: 'lab', gid: 5_000 },
  ]);
  assert.deepEqual(await steps(wanted), [
    `create team physics/vision gid 5003; members ${bob}`,
    'create team physics/lab gid 5000; members everyone',
  ]);
  assert.deepEqual(await steps(wanted), []);
  const all = groupsOf(await exported()) ?? [];
  assert.deepEqual(
    all.map(({ name }) => name),
    ['lab', 'physics', 'vision'],
  );
  assert.deepEqual(all[2], { name: 'vision', gid: 5_003, members: [bob] });
  assert.deepEqual(await steps(await exported(), true), [], 'what is exported is what there is');

  assert.deepEqual(await steps(ofPhysics([{ name: 'vision', members: [] }])), [
    `update team physics/vision members ${bob} → none`,
  ]);
  refused(await apply(ofPhysics([{ name: 'vision', gid: 5_004 }])), 409, /has the gid 5003 for good/);
  refused(
    await apply(ofPhysics([{ name: 'other', gid: 5_003 }])),
    409,
    /is, or was, that of the team vision/,
  );
  refused(
    await apply(
      ofPhysics([
        { name: 'x', gid: 5_005 },
        { name: 'y', gid: 5_005 },
      ]),
    ),
    400,
    /is there twice/,
  );
  const stranger = ofPhysics([{ name: 'vision', members: ['no@physics.example'] }]);
  refused(await apply(stranger), 400, /whom no organization has/);

  // Left out, groups stay; pruned, those that the file does not name end, and the group of everyone with the last.
  const members = physics.organizations?.[0]?.members ?? [];
  const without = { ...(await exported()), organizations: [{ slug: 'physics', name: 'Physics', members }] };
  assert.deepEqual(await steps(without, true), []);
  const pruned = (groups: LabGroup[]) =>
    ({ ...without, organizations: [{ ...without.organizations[0], groups }] }) as Lab;
  assert.deepEqual(await steps(pruned([{ name: 'vision', members: [] }]), true), []);
  assert.deepEqual(await steps(pruned([]), true), [
    'remove team physics/lab gid 5000',
    `remove team physics/physics gid ${all[1]?.gid}`,
    'remove team physics/vision gid 5003',
  ]);
  assert.deepEqual((await findManifest(store, alpha))?.groups ?? [], []);
});

test('no team has the gid of a person, whichever of the two had it first', async () => {
  await using service = await startTestApp({ lab: physics });
  const zed = { email: 'zed@physics.example', role: 'member' as const, username: 'zed', uid: 6_000 };
  const apply = (gid: number, groups: LabGroup[] = []) => {
    const lab = { organizations: [{ slug: 'physics', name: 'Physics', groups, members: [{ ...zed, gid }] }] };
    return service.write('/operator/lab', { as: 'root', body: { lab } });
  };
  assert.equal((await apply(5_100, [{ name: 'vision', gid: 5_003 }])).status, 200);
  refused(await apply(5_003), 409, /The gid 5003 of zed is, or was, that of the team vision/);
  refused(await apply(5_100, [{ name: 'shared', gid: 5_100 }]), 409, /The gid 5100 is, or was, that of zed/);
});

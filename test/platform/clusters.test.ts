import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertRow } from '../../src/store/engine/rows.ts';
import { eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { requireRow } from '../support/store.ts';
import { labCluster } from './support.ts';

// Names in the opposite order of the IDs.
const clusters = Array.from({ length: 7 }, (_, i) => labCluster(`c${9 - i}`, i * 3 + 1));
const foreign = labCluster('foreign', 999, {}, { organization: 'chemistry' });
const ids = fieldsOf(clusters, 'id');
const [one = '', two = '', three = ''] = ids;
const expiresAt = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000).toISOString();
const grant = (user: string, name: string | undefined, rest = {}) => ({
  user,
  cluster: name ?? '',
  relation: 'kubernetes.viewer' as const,
  ...rest,
});

test('clusters are shown to members, holders of grants and staff, in pages', async () => {
  await using service = await startTestApp({
    lab: {
      ...physics,
      clusters: [...clusters, foreign],
      grants: [
        grant('guest@elsewhere.example', 'c9', { namespace: 'team-a' }),
        grant('guest@elsewhere.example', 'c9', { relation: 'kubernetes.admin' }),
        grant('guest@elsewhere.example', 'c7', { expiresAt }),
        grant('eve@physics.example', 'c8'),
      ],
    },
  });
  const membership = async (email: string) => {
    const token = await service.issuer.token(email.split('@')[0] ?? '', { email });
    return { token, org: (await service.business('/me', { token })).body.default_org_id };
  };
  const { org } = await membership('ada@physics.example');
  const { org: chemistry, token: carl } = await membership('carl@chemistry.example');
  const guest = () => service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const list = (query: string, call: object = { as: 'ada' }) => service.platform(`/clusters${query}`, call);
  const idsOf = ({ body }: Reply) => body.items.map(({ id }: { id: string }) => id);
  const read = (id: string, call: object = { as: 'ada' }, of = org) =>
    service.platform(`/clusters/${id}?businessOrgId=${of}`, call);
  const all = await list(`?businessOrgId=${org}`);
  assert.deepEqual([idsOf(all), 'nextPageToken' in all.body], [ids, false]);

  const { status, body } = await eventually(
    () => read(one),
    (reply) => reply.body.status.lifecycleState === 'active',
  );
  assert.equal(status, 200);
  const { metadata, ...rest } = body;
  assert.deepEqual(rest, {
    id: one,
    spec: {
      ...{ name: 'c9', site: { id: 'default', name: 'default' }, businessOrganization: { id: org } },
      ...{ version: 'v1.34.2', versionGeneration: 1, desiredGeneration: 1, schedulerGeneration: 0 },
    },
    status: { lifecycleState: 'active', lifecycleVersion: 2, kubeletVersion: 'v1.34.2' },
  });
  assert.deepEqual(Object.keys(metadata), ['createdAt', 'updatedAt']);
  assert.deepEqual((await list(`?businessOrgId=${org}&limit=1`)).body.items, [body]);
  assert.equal((await read(two.toUpperCase())).body.id, two, 'in capitals');

  for (const limit of [1, 2, 3, 6, 7, 8, 200]) {
    const seen: string[] = [];
    let pages = 0;
    for (let after = ''; pages === 0 || after !== ''; pages++) {
      const page = await list(`?businessOrgId=${org}&limit=${limit}${after}`);
      assert.ok(page.body.items.length <= limit);
      seen.push(...idsOf(page));
      const { nextPageToken: next } = page.body;
      after = next === undefined ? '' : `&after=${encodeURIComponent(next)}`;
    }
    assert.deepEqual([seen, pages], [ids, Math.ceil(ids.length / limit)]);
  }
  // Anything but a token of this list is none.
  const { nextPageToken: good } = (await list(`?businessOrgId=${org}&limit=2`)).body;
  refused(
    await list(`?businessOrgId=${chemistry}&after=${good}`, { token: carl }),
    400,
    'invalid_pagination',
  );
  const made = (...lines: string[]) => Buffer.from(lines.join('\n')).toString('base64url');
  for (const after of [
    ...['', 'x', two, `${good}A`, `${good}!`, `${good}=`, good.slice(0, -2)],
    ...[made(`clusters/${org}`), made(`clusters/${org}`, 'x'), made(`machines/${org}`, one)],
    made(`clusters/${org}`, one, ''),
  ]) {
    const sent = `?businessOrgId=${org}&after=${encodeURIComponent(after)}`;
    refused(await list(sent), 400, 'invalid_pagination');
  }

  // Who has no clusters.read sees those with a grant, a member or not, once however many grants.
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { as: 'eve' })), [two]);
  assert.equal((await read(two, { as: 'eve' })).status, 200);
  const token = await guest();
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { token })), [one, three]);
  const page = await list(`?businessOrgId=${org}&limit=1`, { token });
  const next = await list(`?businessOrgId=${org}&limit=1&after=${page.body.nextPageToken}`, { token });
  assert.deepEqual([idsOf(page), idsOf(next), 'nextPageToken' in next.body], [[one], [three], false]);
  assert.equal((await read(one, { token })).status, 200);
  refused(await read(two, { token }), 403, 'forbidden');
  refused(await read(one, { token }, chemistry), 404, 'not_found');
  assert.deepEqual((await service.business('/me', { token })).body.memberships, []);
  // Staff see those of every organization.
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { as: 'root' })), ids);
  assert.deepEqual(idsOf(await list(`?businessOrgId=${chemistry}`, { as: 'root' })), [foreign.id]);
  assert.equal((await read(one, { as: 'root' })).status, 200);

  // Pages stay right while clusters come and go.
  const { store } = service.app;
  const row = await requireRow(store.read, 'clusters', { id: one });
  const add = (...added: string[]) =>
    store.write(async ({ db }) => {
      for (const id of added) await insertRow(db, 'clusters', { ...row, id, name: id, state: 'released' });
    });
  const [before, behind] = [1, 5].map((n) => `0000000${n}-0000-4000-8000-000000000000`) as [string, string];
  await add(before, behind);
  const following = await list(`?businessOrgId=${org}&limit=2&after=${good}`);
  assert.deepEqual(
    idsOf(following),
    [behind, three],
    'nothing twice, and what came behind the page is in it',
  );
  await store.write(({ db }) => db.deleteFrom('clusters').where('id', 'in', [before, behind]).execute());
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}&limit=1&after=${good}`)), [three]);
  await add(...Array.from({ length: 60 }, (_, i) => `ffffffff-0000-4000-8000-${`${i}`.padStart(12, '0')}`));
  const many = await list(`?businessOrgId=${org}`);
  assert.equal(many.body.items.length, 50, 'where no limit is given');
  assert.equal((await list(`?businessOrgId=${org}&after=${many.body.nextPageToken}`)).body.items.length, 17);

  // A grant ends at the second at which it expires.
  service.advance(Date.parse(expiresAt) - Date.now() - 500);
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { token: await guest() })), [one, three]);
  service.advance(500);
  const late = { token: await guest() };
  assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, late)), [one]);
  refused(await read(three, late), 403, 'forbidden');
});

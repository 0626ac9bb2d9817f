import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LabCluster } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { refused } from './support.ts';

const simulated = { computeNodes: 1, gpusPerNode: 1, applyMs: 0 };
const cluster = (name: string, n: number, organization = 'physics'): LabCluster => ({
  name,
  id: `${n.toString(16).padStart(8, '0')}-3c39-4a8e-9a55-0d1c2b3a4f50`,
  organization,
  scheduler: 'kubernetes',
  simulated,
});
// Names in the opposite order of the IDs.
const clusters = Array.from({ length: 7 }, (_, i) => cluster(`c${9 - i}`, i * 3 + 1));
const foreign = cluster('foreign', 999, 'chemistry');
const ids = clusters.map(({ id }) => id ?? '');
const [one = '', two = '', three = ''] = ids;
const expiresAt = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000).toISOString();
const grant = (user: string, name: string | undefined, rest = {}) => ({
  user,
  cluster: name ?? '',
  relation: 'kubernetes.viewer' as const,
  ...rest,
});

test('clusters on Platform', async (t) => {
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
  const { org: chemistry } = await membership('carl@chemistry.example');
  const guest = () => service.issuer.token('guest', { email: 'guest@elsewhere.example' });
  const list = (query: string, call: object = { as: 'ada' }) => service.platform(`/clusters${query}`, call);
  const idsOf = ({ body }: Reply) => body.items.map(({ id }: { id: string }) => id);
  await t.test('GET /clusters shows all of the organization, by id, and no other’s', async () => {
    const reply = await list(`?businessOrgId=${org}`);
    assert.deepEqual(idsOf(reply), ids);
    assert.equal('nextPageToken' in reply.body, false);
  });

  await t.test('a cluster has every field of the contract', async () => {
    const { status, body } = await eventually(
      () => service.platform(`/clusters/${one}?businessOrgId=${org}`, { as: 'ada' }),
      (reply) => reply.body.status.lifecycleState === 'active',
    );
    assert.equal(status, 200);
    assert.deepEqual(body, {
      id: one,
      metadata: body.metadata,
      spec: {
        name: 'c9',
        site: { id: 'default', name: 'default' },
        businessOrganization: { id: org },
        version: 'v1.34.2',
        versionGeneration: 1,
        desiredGeneration: 1,
        schedulerGeneration: 0,
      },
      status: { lifecycleState: 'active', lifecycleVersion: 2, kubeletVersion: 'v1.34.2' },
    });
    assert.deepEqual(Object.keys(body.metadata), ['createdAt', 'updatedAt']);
    assert.deepEqual(Object.keys(body.status), ['lifecycleState', 'lifecycleVersion', 'kubeletVersion']);
    assert.deepEqual((await list(`?businessOrgId=${org}&limit=1`)).body.items, [body]);
  });

  await t.test('pages of any size show every cluster once, in order; the last has no token', async () => {
    for (const limit of [1, 2, 3, 6, 7, 8, 200]) {
      const seen: string[] = [];
      let pages = 0;
      for (let after = ''; pages === 0 || after !== ''; pages++) {
        const { body } = await list(`?businessOrgId=${org}&limit=${limit}${after}`);
        assert.ok(body.items.length <= limit);
        seen.push(...body.items.map(({ id }: { id: string }) => id));
        after = body.nextPageToken === undefined ? '' : `&after=${encodeURIComponent(body.nextPageToken)}`;
      }
      assert.deepEqual([seen, pages], [ids, Math.ceil(ids.length / limit)]);
    }
  });

  await t.test('anything but a token of this list is 400 invalid_pagination', async () => {
    const { nextPageToken: good } = (await list(`?businessOrgId=${org}&limit=2`)).body;
    const { token } = await membership('carl@chemistry.example');
    const query = `?businessOrgId=${chemistry}&after=${good}`;
    refused(await list(query, { token }), 400, 'invalid_pagination');
    const made = (...lines: string[]) => Buffer.from(lines.join('\n')).toString('base64url');
    for (const after of [
      ...['', 'x', two, `${good}A`, `${good}!`, `${good}=`, good.slice(0, -2)],
      ...[made(`clusters/${org}`), made(`clusters/${org}`, 'x'), made(`machines/${org}`, one)],
      made(`clusters/${org}`, one, ''),
    ]) {
      const sent = `?businessOrgId=${org}&after=${encodeURIComponent(after)}`;
      refused(await list(sent), 400, 'invalid_pagination');
    }
  });

  await t.test('a cluster ID may be written in capitals', async () => {
    const path = `/clusters/${two.toUpperCase()}?businessOrgId=${org}`;
    assert.equal((await service.platform(path, { as: 'ada' })).body.id, two);
  });

  await t.test('a member without clusters.read sees only clusters with a grant', async () => {
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { as: 'eve' })), [two]);
    assert.equal(
      (await service.platform(`/clusters/${two}?businessOrgId=${org}`, { as: 'eve' })).status,
      200,
    );
  });

  await t.test('a grant makes its cluster visible without membership, once however many grants', async () => {
    const token = await guest();
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { token })), [one, three]);
    const page = await list(`?businessOrgId=${org}&limit=1`, { token });
    const next = await list(`?businessOrgId=${org}&limit=1&after=${page.body.nextPageToken}`, { token });
    assert.deepEqual([...idsOf(page), ...idsOf(next)], [one, three]);
    assert.equal('nextPageToken' in next.body, false);
    assert.equal((await service.platform(`/clusters/${one}?businessOrgId=${org}`, { token })).status, 200);
    refused(await service.platform(`/clusters/${two}?businessOrgId=${org}`, { token }), 403, 'forbidden');
    refused(
      await service.platform(`/clusters/${one}?businessOrgId=${chemistry}`, { token }),
      404,
      'not_found',
    );
    assert.deepEqual((await service.business('/me', { token })).body.memberships, []);
  });

  await t.test('paging by ID stays right while clusters come and go', async () => {
    const { store } = service.app;
    const page = await list(`?businessOrgId=${org}&limit=2`);
    assert.deepEqual(idsOf(page), [one, two]);
    const row = await store.read
      .selectFrom('clusters')
      .selectAll()
      .where('id', '=', one)
      .executeTakeFirstOrThrow();
    const before = '00000001-0000-4000-8000-000000000000';
    const behind = '00000005-0000-4000-8000-000000000000';
    await store.write(async ({ db }) => {
      for (const id of [before, behind]) {
        await db
          .insertInto('clusters')
          .values({ ...row, id, name: id, state: 'released' })
          .execute();
      }
    });
    const { nextPageToken } = page.body;
    const next = await list(`?businessOrgId=${org}&limit=2&after=${nextPageToken}`);
    assert.deepEqual(idsOf(next), [behind, three], 'nothing twice, and what came behind the page is in it');
    await store.write(async ({ db }) => {
      await db.deleteFrom('clusters').where('id', 'in', [before, behind]).execute();
    });
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}&limit=1&after=${nextPageToken}`)), [three]);
  });

  await t.test('staff see every organization’s clusters without belonging to it', async () => {
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { as: 'root' })), ids);
    assert.deepEqual(idsOf(await list(`?businessOrgId=${chemistry}`, { as: 'root' })), [foreign.id]);
    assert.equal(
      (await service.platform(`/clusters/${one}?businessOrgId=${org}`, { as: 'root' })).status,
      200,
    );
  });

  await t.test('limit is 50 when left out', async () => {
    await service.app.store.write(async ({ db }) => {
      const row = await db.selectFrom('clusters').selectAll().where('id', '=', one).executeTakeFirstOrThrow();
      for (let i = 0; i < 60; i++) {
        const id = `ffffffff-0000-4000-8000-${i.toString().padStart(12, '0')}`;
        await db
          .insertInto('clusters')
          .values({ ...row, id, name: `more-${i}`, state: 'released' })
          .execute();
      }
    });
    const { body } = await list(`?businessOrgId=${org}`);
    assert.equal(body.items.length, 50);
    assert.equal((await list(`?businessOrgId=${org}&after=${body.nextPageToken}`)).body.items.length, 17);
  });

  await t.test('a grant ends at the second at which it expires', async () => {
    service.advance(Date.parse(expiresAt) - Date.now() - 500);
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { token: await guest() })), [one, three]);
    service.advance(500);
    const token = await guest();
    assert.deepEqual(idsOf(await list(`?businessOrgId=${org}`, { token })), [one]);
    refused(await service.platform(`/clusters/${three}?businessOrgId=${org}`, { token }), 403, 'forbidden');
  });
});

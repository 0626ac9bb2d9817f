import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LabCluster } from '../../src/domain/clusters/lab.ts';
import { eventually, physics, type Reply, startTestApp } from '../support/app.ts';

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
  const refused = (reply: Reply, status: number, code: string, message?: RegExp) => {
    assert.deepEqual([reply.status, reply.body.code, reply.body.retryable], [status, code, false]);
    assert.deepEqual(Object.keys(reply.body).sort(), ['code', 'message', 'retryable']);
    if (message) assert.match(reply.body.message, message);
  };

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

  for (const limit of [1, 2, 3, 6, 7, 8, 200]) {
    await t.test(`pages of ${limit} show every cluster once, in order; the last has no token`, async () => {
      const seen: string[] = [];
      let after = '';
      for (let pages = 1; ; pages++) {
        const reply = await list(`?businessOrgId=${org}&limit=${limit}${after}`);
        assert.equal(reply.status, 200);
        assert.ok(reply.body.items.length <= limit);
        seen.push(...idsOf(reply));
        if (reply.body.nextPageToken === undefined) {
          assert.equal(pages, Math.ceil(ids.length / limit));
          break;
        }
        after = `&after=${encodeURIComponent(reply.body.nextPageToken)}`;
      }
      assert.deepEqual(seen, ids);
    });
  }

  await t.test('a page token is refused on another organization’s list', async () => {
    const { nextPageToken } = (await list(`?businessOrgId=${org}&limit=2`)).body;
    const call = { token: (await membership('carl@chemistry.example')).token };
    refused(
      await list(`?businessOrgId=${chemistry}&after=${nextPageToken}`, call),
      400,
      'invalid_pagination',
    );
  });

  await t.test('anything but a token of this list is 400 invalid_pagination', async () => {
    const { nextPageToken: good } = (await list(`?businessOrgId=${org}&limit=2`)).body;
    const made = (text: string) => Buffer.from(text).toString('base64url');
    const tokens = [
      '',
      'x',
      two,
      `${good}A`,
      `${good}!`,
      `${good}=`,
      good.slice(0, -2),
      made(`clusters/${org}`),
    ];
    tokens.push(
      made(`clusters/${org}\nx`),
      made(`machines/${org}\n${one}`),
      made(`clusters/${org}\n${one}\n`),
    );
    for (const after of tokens) {
      refused(
        await list(`?businessOrgId=${org}&after=${encodeURIComponent(after)}`),
        400,
        'invalid_pagination',
      );
    }
  });

  const shapes: [string, number, string, RegExp][] = [
    ['limit=0', 422, 'invalid_request', /limit/],
    ['limit=201', 422, 'invalid_request', /limit must be <= 200/],
    ['limit=-1', 422, 'invalid_request', /limit/],
    ['limit=1.5', 422, 'invalid_request', /limit/],
    ['limit=ten', 422, 'invalid_request', /limit/],
    ['limit=', 422, 'invalid_request', /limit is empty/],
    ['limit=1&limit=2', 422, 'invalid_request', /limit/],
    ['sort=name', 422, 'invalid_request', /query parameter sort is not known/],
  ];
  for (const [query, status, code, message] of shapes) {
    await t.test(`GET /clusters?${query} is ${status} ${code}`, async () => {
      refused(await list(`?businessOrgId=${org}&${query}`), status, code, message);
    });
  }

  await t.test('without businessOrgId, or with an empty one, it is 400 invalid_organization', async () => {
    for (const path of [
      '/clusters',
      '/clusters?businessOrgId=',
      `/clusters/${one}`,
      `/clusters/${one}?businessOrgId=`,
    ]) {
      refused(await service.platform(path, { as: 'ada' }), 400, 'invalid_organization', /businessOrgId/);
    }
  });

  await t.test('without businessOrgId that is what is said, whatever else is wrong: 400', async () => {
    refused(await list('?limit=201'), 400, 'invalid_organization', /businessOrgId/);
    refused(await list('?businessOrgId=&limit=0'), 400, 'invalid_organization', /businessOrgId/);
  });

  await t.test('with businessOrgId twice it is 422 invalid_request', async () => {
    refused(
      await list(`?businessOrgId=${org}&businessOrgId=${org}`),
      422,
      'invalid_request',
      /businessOrgId/,
    );
  });

  await t.test(
    'a cluster ID that is no UUID is 400 invalid_cluster, before anything is said of rights',
    async () => {
      for (const id of ['nonsense', '%2F', `${one}0`, `org_${one}`, 'cluster_01JD0000000000000000000000']) {
        for (const as of ['ada', 'eve']) {
          const reply = await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as });
          refused(reply, 400, 'invalid_cluster');
        }
      }
    },
  );

  await t.test('a cluster ID may be written in capitals', async () => {
    const path = `/clusters/${two.toUpperCase()}?businessOrgId=${org}`;
    assert.equal((await service.platform(path, { as: 'ada' })).body.id, two);
  });

  await t.test(
    'a cluster that is not there, or not in the organization named, is 404 not_found',
    async () => {
      for (const id of ['00000000-0000-4000-8000-000000000000', foreign.id]) {
        refused(
          await service.platform(`/clusters/${id}?businessOrgId=${org}`, { as: 'ada' }),
          404,
          'not_found',
        );
      }
    },
  );

  await t.test(
    'without clusters.read and without a grant it is 403 forbidden, whether or not it exists',
    async () => {
      for (const path of [
        `/clusters?businessOrgId=${chemistry}`,
        '/clusters?businessOrgId=org_01JD0000000000000000000000',
        `/clusters/${foreign.id}?businessOrgId=${chemistry}`,
        `/clusters/00000000-0000-4000-8000-000000000000?businessOrgId=${chemistry}`,
      ]) {
        refused(await service.platform(path, { as: 'ada' }), 403, 'forbidden');
      }
      refused(
        await service.platform(`/clusters/${one}?businessOrgId=${org}`, { as: 'eve' }),
        403,
        'forbidden',
      );
    },
  );

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

  await t.test('a grant that is revoked shows nothing any more', async () => {
    await service.app.store.write(async ({ db }) => {
      await db.updateTable('resource_grants').set('revoked_at', new Date().toISOString()).execute();
    });
    refused(await list(`?businessOrgId=${org}`, { token: await guest() }), 403, 'forbidden');
  });
});

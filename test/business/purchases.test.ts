import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { mostClusterBytes, quoteLifetimeMs } from '../../src/domain/clusters/storage-purchase.ts';
import { findCluster } from '../../src/store/clusters/clusters.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import {
  findStorageTarget,
  listPurchases,
  sumActivePurchases,
} from '../../src/store/clusters/storage-purchases.ts';
import type { Change } from '../../src/store/engine/index.ts';
import { alpha, beta, type Call, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { everyKind, openTestStore } from '../support/store.ts';

const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const tebibyte = 2 ** 40;

/** As `physics`, with an admin, staff that may only read, a cluster of another organization, and no login nodes. */
const lab: Lab = {
  users: [...(physics.users ?? []), { email: 'rita@physics.example', staff: ['staff.read'] }],
  organizations: (physics.organizations ?? []).map((organization) =>
    organization.slug === 'physics'
      ? {
          ...organization,
          members: [
            ...(organization.members ?? []),
            { email: 'amy@physics.example', role: 'admin', username: 'amy' },
          ],
        }
      : organization,
  ),
  clusters: [
    ...(physics.clusters ?? []).map((cluster) => ({ ...cluster, scheduler: 'kubernetes' as const })),
    {
      name: 'gamma',
      id: gamma,
      organization: 'chemistry',
      scheduler: 'kubernetes',
      simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 1 },
    },
  ],
};

async function start() {
  const service = await startTestApp({ lab });
  return prepare(service).catch(async (error) => {
    await service[Symbol.asyncDispose]();
    throw error;
  });
}

async function prepare(service: TestApp) {
  const { store } = service.app;
  await eventually(
    () => store.read.selectFrom('clusters').select('id').where('state', '!=', 'active').execute(),
    (waiting) => waiting.length === 0,
  );
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const carl = await service.issuer.token('carl', { email: 'carl@chemistry.example' }, 86_400);
  const chemistry: string = (await service.business('/me', { token: carl })).body.default_org_id;
  type Write = Partial<Call> & { key?: string; reason?: string };
  const quote = (as: string, body: object = {}, call: Write = {}) =>
    service.write(`/organizations/${org}/purchases/quotes`, {
      as,
      body: { target_cluster_id: alpha, storage_type: 'ceph', bytes: tebibyte, ...body },
      ...call,
    });
  const buy = (as: string, quote_id: string, call: Write & { target?: string } = {}) => {
    const { target = alpha, ...rest } = call;
    const body = { target_cluster_id: target, quote_id };
    return service.write(`/organizations/${org}/purchases`, { as, body, ...rest });
  };
  const decide = (as: string, id: string, decision: 'accept' | 'decline', call: Write = {}) =>
    service.write(`/operator/purchases/${id}/${decision}`, { as, ...call });
  const sum = async (clusterId = alpha) => sumActivePurchases(store.read, clusterId);
  const cluster = (id = alpha) =>
    store.read.selectFrom('clusters').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const audit = () =>
    store.read
      .selectFrom('audit_entries')
      .selectAll()
      // A person's first call is an entry of the trail too.
      .where('operation', '!=', 'bindIdentity')
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
  const setState = (state: 'active' | 'releasing', id = alpha) =>
    store.write(async (tx) => {
      await tx.db.updateTable('clusters').set({ state }).where('id', '=', id).execute();
    });
  /** Quotes and buys; the purchase. */
  const bought = async (body: object = {}) => {
    const { target_cluster_id: target = alpha } = body as { target_cluster_id?: string };
    const reply = await buy('ada', (await quote('ada', body)).body.id, { target });
    assert.equal(reply.status, 201, JSON.stringify(reply.body));
    return reply.body;
  };
  return {
    service,
    store,
    org,
    chemistry,
    carl,
    quote,
    buy,
    decide,
    sum,
    cluster,
    audit,
    setState,
    bought,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

const refusal = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

test('storage purchases', async (t) => {
  await using given = await start();
  const { service, store, org, chemistry, carl, quote, buy, decide, sum, cluster, audit } = given;
  const me = async (as: string) => (await service.business('/me', { as })).body.user.id;

  await t.test(
    'an owner and an admin get a quote: 201 with current_bytes, bytes and total_bytes',
    async () => {
      for (const as of ['ada', 'amy']) {
        const { status, body } = await quote(as);
        assert.equal(status, 201);
        const { id, created_at, expires_at, ...rest } = body;
        assert.match(id, /^quote_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
        assert.equal(Date.parse(expires_at) - Date.parse(created_at), quoteLifetimeMs);
        assert.deepEqual(rest, {
          organization_id: org,
          target_cluster_id: alpha,
          storage_type: 'ceph',
          bytes: tebibyte,
          current_bytes: 0,
          total_bytes: tebibyte,
        });
      }
      assert.deepEqual(await listPurchases(store.read), [], 'a quote buys nothing');
    },
  );

  await t.test('the cluster must belong to the organization: 404', async () => {
    for (const target_cluster_id of [gamma, 'nonsense', crypto.randomUUID()]) {
      assert.deepEqual(refusal(await quote('ada', { target_cluster_id })), [404, 'not_found']);
    }
  });

  const shapes: [string, object][] = [
    ['WEKA cannot be bought', { storage_type: 'weka' }],
    ['nothing', { bytes: 0 }],
    ['less than nothing', { bytes: -tebibyte }],
    ['half a byte', { bytes: 0.5 }],
    ['more than 1 PiB at once', { bytes: 2 ** 50 + 1 }],
    ['a number that is text', { bytes: '1' }],
    ['an unknown field', { shrink: true }],
  ];
  for (const [what, body] of shapes) {
    await t.test(`a quote for ${what} is 422`, async () => {
      assert.deepEqual(refusal(await quote('ada', body)), [422, 'invalid_request']);
    });
  }

  await t.test('a purchase needs the quote of this organization and this cluster: else 404', async () => {
    const own = (await quote('ada')).body.id;
    const foreign = await service.write(`/organizations/${chemistry}/purchases/quotes`, {
      token: carl,
      body: { target_cluster_id: gamma, storage_type: 'ceph', bytes: 1 },
    });
    assert.equal(foreign.status, 201);
    const unknown = 'quote_01JD0000000000000000000000';
    for (const [id, target] of [
      [foreign.body.id, alpha],
      [foreign.body.id, gamma],
      [unknown, alpha],
      ['x'.repeat(10_000), alpha],
      [own, beta],
      [own, gamma],
    ] as const) {
      assert.deepEqual(refusal(await buy('ada', id, { target })), [404, 'not_found']);
    }
    assert.deepEqual(await listPurchases(store.read), []);
  });

  await t.test('a quote holds for 15 minutes', async () => {
    const late = (await quote('ada')).body.id;
    service.advance(quoteLifetimeMs);
    const { status, body } = await buy('ada', late);
    assert.deepEqual([status, body.code, body.retryable], [409, 'invalid_state', false]);
    assert.match(body.message, /expired; ask for a new quote/);
    const inTime = (await quote('ada', { target_cluster_id: beta })).body.id;
    service.advance(quoteLifetimeMs - 60_000);
    assert.equal((await buy('ada', inTime, { target: beta })).status, 201);
  });

  let purchase: { id: string; quote_id: string };
  await t.test('a purchase is requested: 201, counts for nothing yet, and the list shows it', async () => {
    const quoted = (await quote('amy')).body;
    const before = await cluster();
    // In the other case, it is the same cluster.
    const { status, body } = await buy('amy', quoted.id, { target: alpha.toUpperCase(), key: 'buy' });
    assert.equal(status, 201);
    purchase = body;
    const { id, created_at, ...rest } = body;
    assert.match(id, /^purchase_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    assert.ok(Date.parse(created_at));
    assert.deepEqual(rest, {
      organization_id: org,
      target_cluster_id: alpha,
      storage_type: 'ceph',
      bytes: tebibyte,
      quote_id: quoted.id,
      state: 'requested',
      created_by_user_id: await me('amy'),
    });
    assert.deepEqual(await sum(), { ceph: 0, nfs: 0 });
    assert.equal((await cluster()).desired_generation, before.desired_generation);
    const { purchases } = (await service.business('/operator/purchases', { as: 'root' })).body;
    assert.deepEqual(purchases.at(-1), body);
    const entry = await audit();
    assert.deepEqual(
      [entry.operation, entry.target, entry.organization_id, entry.cluster_id, entry.result],
      ['createPurchase', id, org, alpha, 'done'],
    );
    assert.match(entry.details, /1099511627776 bytes of ceph for alpha/);
  });

  await t.test('the same key and body again is 200 with the first result; another body 409', async () => {
    const replay = await buy('amy', purchase.quote_id, { key: 'buy' });
    assert.deepEqual([replay.status, replay.body], [200, purchase]);
    const other = await buy('amy', 'quote_01JD0000000000000000000000', { key: 'buy' });
    assert.deepEqual(refusal(other), [409, 'idempotency_mismatch']);
    const first = await quote('amy', {}, { key: 'ask' });
    const again = await quote('amy', { target_cluster_id: alpha.toUpperCase() }, { key: 'ask' });
    assert.deepEqual([again.status, again.body], [200, first.body]);
    assert.deepEqual(refusal(await quote('amy', { bytes: 5 }, { key: 'ask' })), [
      409,
      'idempotency_mismatch',
    ]);
  });

  await t.test('permissions are rechecked on every replay', async () => {
    const role = (name: 'admin' | 'member') =>
      store.write(async ({ db }) => {
        const user = await db
          .selectFrom('users')
          .select('id')
          .where('primary_email', '=', 'amy@physics.example')
          .executeTakeFirstOrThrow();
        await db.updateTable('memberships').set({ role: name }).where('user_id', '=', user.id).execute();
      });
    await role('member');
    assert.deepEqual(refusal(await buy('amy', purchase.quote_id, { key: 'buy' })), [403, 'forbidden']);
    await role('admin');
    assert.equal((await buy('amy', purchase.quote_id, { key: 'buy' })).status, 200);
  });

  await t.test('a quote is good once, with any key, and of two at the same instant one wins', async () => {
    assert.deepEqual(refusal(await buy('ada', purchase.quote_id)), [409, 'invalid_state']);
    for (let round = 0; round < 3; round++) {
      const { id } = (await quote('ada')).body;
      const replies = await Promise.all(['ada', 'amy', 'ada', 'amy'].map((as) => buy(as, id)));
      assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409]);
      const won = replies.find(({ status }) => status === 201);
      assert.equal((await decide('root', won?.body.id, 'decline')).status, 200);
    }
  });

  await t.test('buying nfs where a ceph purchase is requested or active is 409', async () => {
    const { status, body } = await quote('ada', { storage_type: 'nfs' });
    assert.deepEqual([status, body.code], [409, 'invalid_state']);
    assert.match(body.message, /NFS cannot go with it/);
  });

  await t.test('operators see every purchase with staff.read; to others there are none', async () => {
    for (const as of ['root', 'rita']) {
      const { status, body } = await service.business('/operator/purchases', { as });
      assert.equal(status, 200);
      assert.equal(body.purchases.length, (await listPurchases(store.read)).length);
    }
    for (const call of [{ as: 'ada' }, { as: 'bob' }, { token: carl }]) {
      assert.deepEqual(refusal(await service.business('/operator/purchases', call)), [403, 'forbidden']);
    }
    for (const decision of ['accept', 'decline'] as const) {
      const unknown = 'purchase_01JD0000000000000000000000';
      assert.deepEqual(refusal(await decide('ada', unknown, decision)), [403, 'forbidden']);
    }
    assert.deepEqual(await sum(), { ceph: 0, nfs: 0 });
  });

  await t.test('accepting makes it active, raises desiredGeneration, and announces the change', async () => {
    const waiting = (await quote('ada')).body.id;
    const seen: Change[] = [];
    using _ = { [Symbol.dispose]: store.onChange(everyKind, (changes) => void seen.push(...changes)) };
    const before = await cluster();
    const { status, body } = await decide('root', purchase.id, 'accept', { key: 'accept' });
    assert.equal(status, 200);
    assert.deepEqual(body, { ...purchase, state: 'active' });
    assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });
    const after = await cluster();
    assert.equal(after.desired_generation, before.desired_generation + 1);
    assert.equal(after.version, before.version + 1);
    assert.ok(seen.some((change) => change.kind === 'cluster' && change.clusterId === alpha));
    const entry = await audit();
    assert.deepEqual(
      [entry.operation, entry.target, entry.organization_id, entry.cluster_id, entry.subject_user_id],
      ['operatorAcceptPurchase', purchase.id, org, alpha, await me('amy')],
    );
    assert.match(entry.details, /requested → active/);

    const replay = await decide('root', purchase.id, 'accept', { key: 'accept' });
    assert.deepEqual([replay.status, replay.body], [200, body]);
    const again = await decide('root', purchase.id, 'accept');
    assert.deepEqual([again.status, again.body], [200, body], 'accepting again changes nothing');
    assert.equal((await cluster()).desired_generation, after.desired_generation);
    assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });

    const late = await buy('ada', waiting);
    assert.deepEqual(refusal(late), [409, 'invalid_state']);
    assert.match(late.body.message, /has grown since this quote; ask for a new quote/);
    assert.equal((await audit()).result, 'refused: invalid_state');
    const { current_bytes, total_bytes } = (await quote('ada')).body;
    assert.deepEqual([current_bytes, total_bytes], [tebibyte, 2 * tebibyte]);
    assert.deepEqual(refusal(await quote('ada', { storage_type: 'nfs' })), [409, 'invalid_state']);
  });

  await t.test('two acceptances at the same instant count once', async () => {
    const { id } = await given.bought();
    const before = await cluster();
    const replies = await Promise.all([1, 2, 3].map(() => decide('root', id, 'accept')));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.deepEqual(await sum(), { ceph: 2 * tebibyte, nfs: 0 });
    assert.equal((await cluster()).desired_generation, before.desired_generation + 1);
  });

  await t.test('a declined purchase counts for nothing and cannot be accepted', async () => {
    const { id } = await given.bought();
    const before = await cluster();
    const { status, body } = await decide('root', id, 'decline', { key: 'decline' });
    assert.deepEqual([status, body.state], [200, 'declined']);
    assert.equal((await decide('root', id, 'decline', { key: 'decline' })).status, 200, 'a replay');
    for (const decision of ['accept', 'decline'] as const) {
      assert.deepEqual(refusal(await decide('root', id, decision)), [409, 'invalid_state']);
    }
    const entry = await audit();
    assert.deepEqual(
      [entry.result, entry.target, entry.cluster_id],
      ['refused: invalid_state', id, alpha],
      'a refused attempt is in the trail of the cluster',
    );
    assert.equal((await cluster()).desired_generation, before.desired_generation);
  });

  await t.test('capacity never shrinks: an active purchase cannot be declined', async () => {
    const before = await sum();
    const { status, body } = await decide('root', purchase.id, 'decline');
    assert.deepEqual([status, body.code], [409, 'invalid_state']);
    assert.match(body.message, /never shrinks/);
    assert.deepEqual(await sum(), before);
  });

  await t.test(
    'the cluster must be provisioning or active when it is quoted, bought and accepted',
    async () => {
      const open = (await quote('ada')).body.id;
      const { id } = await given.bought();
      const before = await sum();
      await given.setState('releasing');
      assert.deepEqual(refusal(await quote('ada')), [409, 'invalid_state']);
      assert.deepEqual(refusal(await buy('ada', open)), [409, 'invalid_state']);
      assert.deepEqual(refusal(await decide('root', id, 'accept')), [409, 'invalid_state']);
      assert.deepEqual(await sum(), before);
      await given.setState('active');
      assert.equal((await decide('root', id, 'accept')).status, 200);
    },
  );

  await t.test('a cluster can have 4 PiB; what goes beyond is refused with what is left', async () => {
    const body = { target_cluster_id: beta, bytes: 2 ** 50 };
    const [waiting] = await listPurchases(store.read);
    assert.equal((await decide('root', waiting?.id ?? '', 'accept')).status, 200);
    for (let times = 0; times < 3; times++) {
      assert.equal((await decide('root', (await given.bought(body)).id, 'accept')).status, 200);
    }
    // Both fit while neither counts; accepting one leaves no room for the other.
    const two = [
      await given.bought({ ...body, bytes: 2 ** 49 }),
      await given.bought({ ...body, bytes: 2 ** 50 - tebibyte }),
    ];
    assert.equal((await decide('root', two[0].id, 'accept')).status, 200);
    assert.deepEqual(refusal(await decide('root', two[1].id, 'accept')), [409, 'invalid_state']);
    const beyond = await quote('ada', body);
    assert.deepEqual(refusal(beyond), [409, 'invalid_state']);
    const { ceph } = await sum(beta);
    assert.match(beyond.body.message, new RegExp(` ${mostClusterBytes - ceph} bytes can still be bought`));
  });

  await t.test('what was bought is there after a restart', async () => {
    const before = [await listPurchases(store.read), await sum(), await sum(beta)];
    await service.app[Symbol.asyncDispose]();
    const reopened = await service.reopen();
    const { read } = reopened;
    const after = [
      await listPurchases(read),
      await sumActivePurchases(read, alpha),
      await sumActivePurchases(read, beta),
    ];
    await reopened.close();
    assert.deepEqual(after, before);
  });
});

test('NFS excludes Ceph, whichever was asked for first', async () => {
  await using given = await start();
  const { quote, buy, decide } = given;
  const nfs = { storage_type: 'nfs' };
  const both = [(await quote('ada', nfs)).body.id, (await quote('ada')).body.id];
  const { status, body } = await buy('ada', both[0]);
  assert.equal(status, 201);
  assert.deepEqual(
    refusal(await buy('ada', both[1])),
    [409, 'invalid_state'],
    'quoted before nfs was bought',
  );
  assert.deepEqual(refusal(await quote('ada')), [409, 'invalid_state']);
  assert.equal((await decide('root', body.id, 'accept')).status, 200);
  assert.deepEqual(await given.sum(), { ceph: 0, nfs: tebibyte });
  assert.deepEqual(refusal(await quote('ada')), [409, 'invalid_state']);
  assert.equal((await quote('ada', nfs)).body.current_bytes, tebibyte);

  const { id } = await given.bought({ ...nfs, target_cluster_id: beta });
  assert.equal((await decide('root', id, 'decline')).status, 200);
  assert.equal(
    (await quote('ada', { target_cluster_id: beta })).status,
    201,
    'a declined one excludes nothing',
  );
});

test('what a cluster reports to have excludes as what was bought does', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const report = {
    manifestGeneration: 0,
    desiredGeneration: 1,
    controlPlaneReady: true,
    machines: [],
    runningJobs: [],
    loginNodes: [],
    accounts: [],
    failure: null,
  };
  const target = async () => {
    const cluster = await findCluster(store.read, alpha);
    assert.ok(cluster);
    return findStorageTarget(store.read, cluster);
  };
  assert.deepEqual(await target(), { state: 'provisioning', activeBytes: 0, types: [] });
  await recordSlurmReport(store, alpha, report);
  assert.deepEqual((await target()).types, []);
  const storage = { ceph: false, weka: true, nfs: false };
  await recordSlurmReport(store, alpha, { ...report, storage });
  assert.deepEqual((await target()).types, ['weka']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { quoteLifetimeMs } from '../../src/domain/clusters/storage-purchase.ts';
import { findCluster } from '../../src/store/clusters/clusters.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import {
  findStorageTarget,
  listPurchases,
  sumActivePurchases,
} from '../../src/store/clusters/storage-purchases.ts';
import type { Change } from '../../src/store/engine/index.ts';
import { alpha, beta, eventually, physics, physicsWith, startTestApp } from '../support/app.ts';
import { everyKind, openTestStore, slurmReport } from '../support/store.ts';

const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const delta = '9e6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const tebibyte = 2 ** 40;

const more = (name: string, id: string, organization: string) => ({
  ...{ name, id, organization, scheduler: 'kubernetes' as const },
  simulated: { computeNodes: 1, gpusPerNode: 1, applyMs: 1 },
});
/** As `physics`, with an admin, a cluster of another organization, one more, and no login nodes. */
const lab: Lab = {
  ...physicsWith({ email: 'amy@physics.example', role: 'admin' }),
  clusters: [
    ...(physics.clusters ?? []).map((cluster) => ({ ...cluster, scheduler: 'kubernetes' as const })),
    more('gamma', gamma, 'chemistry'),
    more('delta', delta, 'physics'),
  ],
};

async function start() {
  const service = await startTestApp({ lab });
  const { store } = service.app;
  await eventually(
    () => store.read.selectFrom('clusters').select('id').where('state', '!=', 'active').execute(),
    (waiting) => waiting.length === 0,
  );
  const org: string = (await service.business('/me', { as: 'ada' })).body.default_org_id;
  const quote = (as: string, body: object = {}) =>
    service.write(`/organizations/${org}/purchases/quotes`, {
      as,
      body: { target_cluster_id: alpha, storage_type: 'ceph', bytes: tebibyte, ...body },
    });
  const buy = (as: string, quote_id: string, target = alpha) =>
    service.write(`/organizations/${org}/purchases`, { as, body: { target_cluster_id: target, quote_id } });
  return {
    service,
    store,
    org,
    quote,
    buy,
    decide: (id: string, decision: 'accept' | 'decline') =>
      service.write(`/operator/purchases/${id}/${decision}`, { as: 'root' }),
    sum: async (clusterId = alpha) => sumActivePurchases(store.read, clusterId),
    cluster: () =>
      store.read.selectFrom('clusters').selectAll().where('id', '=', alpha).executeTakeFirstOrThrow(),
    audit: () =>
      store.read
        .selectFrom('audit_entries')
        .selectAll()
        // A person's first call is an entry of the trail too.
        .where('operation', '!=', 'bindIdentity')
        .orderBy('seq', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow(),
    setState: (state: 'active' | 'releasing') =>
      store.write(async ({ db }) => {
        await db.updateTable('clusters').set({ state }).where('id', '=', alpha).execute();
      }),
    /** Quotes and buys; the purchase. */
    bought: async (body: { target_cluster_id?: string; [name: string]: unknown } = {}) => {
      const reply = await buy('ada', (await quote('ada', body)).body.id, body.target_cluster_id);
      assert.equal(reply.status, 201, JSON.stringify(reply.body));
      return reply.body;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

const refusal = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

test('storage purchases', async (t) => {
  await using given = await start();
  const { service, store, org, quote, buy, decide, sum, cluster, audit } = given;
  const me = async (as: string) => (await service.business('/me', { as })).body.user.id;

  await t.test('a quote: 201 with current_bytes, bytes and total_bytes', async () => {
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
  });

  await t.test('the cluster must belong to the organization: 404', async () => {
    for (const target_cluster_id of [gamma, 'nonsense', crypto.randomUUID()]) {
      assert.deepEqual(refusal(await quote('ada', { target_cluster_id })), [404, 'not_found']);
    }
  });

  await t.test('a quote is for whole bytes of Ceph or NFS, up to 1 PiB at once: 422', async () => {
    for (const bytes of [0, -tebibyte, 0.5, 2 ** 50 + 1, '1'])
      assert.deepEqual(refusal(await quote('ada', { bytes })), [422, 'invalid_request']);
    for (const body of [{ storage_type: 'weka' }, { shrink: true }])
      assert.deepEqual(refusal(await quote('ada', body)), [422, 'invalid_request']);
  });

  await t.test('a purchase needs the quote of this organization and this cluster: else 404', async () => {
    const own = (await quote('ada')).body.id;
    const token = await service.issuer.token('carl', { email: 'carl@chemistry.example' });
    const chemistry = (await service.business('/me', { token })).body.default_org_id;
    const foreign = await service.write(`/organizations/${chemistry}/purchases/quotes`, {
      token,
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
      assert.deepEqual(refusal(await buy('ada', id, target)), [404, 'not_found']);
    }
    assert.deepEqual(await listPurchases(store.read), []);
  });

  await t.test('NFS excludes Ceph, whichever was asked for first', async () => {
    const ceph = { target_cluster_id: delta };
    const nfs = { ...ceph, storage_type: 'nfs' };
    const declined = await given.bought(nfs);
    assert.equal((await decide(declined.id, 'decline')).status, 200);
    const both = [(await quote('ada', nfs)).body.id, (await quote('ada', ceph)).body.id];
    const { status, body } = await buy('ada', both[0], delta);
    assert.equal(status, 201);
    const late = await buy('ada', both[1], delta);
    assert.deepEqual(refusal(late), [409, 'invalid_state'], 'quoted before nfs was bought');
    assert.deepEqual(refusal(await quote('ada', ceph)), [409, 'invalid_state']);
    assert.equal((await decide(body.id, 'accept')).status, 200);
    assert.deepEqual(await sum(delta), { ceph: 0, nfs: tebibyte });
    assert.deepEqual(refusal(await quote('ada', ceph)), [409, 'invalid_state']);
    assert.equal((await quote('ada', nfs)).body.current_bytes, tebibyte);
  });

  let purchase: { id: string; quote_id: string };
  await t.test('a purchase is requested: 201, counts for nothing yet, and the list shows it', async () => {
    const quoted = (await quote('amy')).body;
    const before = await cluster();
    // In the other case, it is the same cluster.
    const { status, body } = await buy('amy', quoted.id, alpha.toUpperCase());
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
    assert.deepEqual([entry.target, entry.cluster_id], [id, alpha]);
    assert.match(entry.details, /1099511627776 bytes of ceph for alpha/);
  });

  await t.test('a quote is good once, with any key, and of two at the same instant one wins', async () => {
    assert.deepEqual(refusal(await buy('ada', purchase.quote_id)), [409, 'invalid_state']);
    const { id } = (await quote('ada')).body;
    const replies = await Promise.all(['ada', 'amy', 'ada', 'amy'].map((as) => buy(as, id)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409]);
    const won = replies.find(({ status }) => status === 201);
    assert.equal((await decide(won?.body.id, 'decline')).status, 200);
  });

  await t.test('accepting makes it active, raises desiredGeneration, and announces the change', async () => {
    const waiting = (await quote('ada')).body.id;
    const seen: Change[] = [];
    using _ = { [Symbol.dispose]: store.onChange(everyKind, (changes) => void seen.push(...changes)) };
    const before = await cluster();
    const { status, body } = await decide(purchase.id, 'accept');
    assert.equal(status, 200);
    assert.deepEqual(body, { ...purchase, state: 'active' });
    assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });
    const after = await cluster();
    assert.equal(after.desired_generation, before.desired_generation + 1);
    assert.equal(after.version, before.version + 1);
    assert.ok(seen.some((change) => change.kind === 'cluster' && change.clusterId === alpha));
    const entry = await audit();
    assert.deepEqual([entry.target, entry.subject_user_id], [purchase.id, await me('amy')]);
    assert.match(entry.details, /requested → active/);
    const again = await decide(purchase.id, 'accept');
    assert.deepEqual([again.status, again.body], [200, body], 'accepting again changes nothing');
    assert.equal((await cluster()).desired_generation, after.desired_generation);
    assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });

    const late = await buy('ada', waiting);
    assert.deepEqual(refusal(late), [409, 'invalid_state']);
    assert.match(late.body.message, /has grown since this quote; ask for a new quote/);
    const { current_bytes, total_bytes } = (await quote('ada')).body;
    assert.deepEqual([current_bytes, total_bytes], [tebibyte, 2 * tebibyte]);
    assert.deepEqual(refusal(await quote('ada', { storage_type: 'nfs' })), [409, 'invalid_state']);
  });

  await t.test('a declined purchase counts for nothing and cannot be accepted', async () => {
    const { id } = await given.bought();
    const before = await cluster();
    const { status, body } = await decide(id, 'decline');
    assert.deepEqual([status, body.state], [200, 'declined']);
    for (const decision of ['accept', 'decline'] as const) {
      assert.deepEqual(refusal(await decide(id, decision)), [409, 'invalid_state']);
    }
    assert.equal((await cluster()).desired_generation, before.desired_generation);
  });

  await t.test('the cluster must be in service when it is quoted, bought and accepted', async () => {
    const open = (await quote('ada')).body.id;
    const { id } = await given.bought();
    const before = await sum();
    await given.setState('releasing');
    assert.deepEqual(refusal(await quote('ada')), [409, 'invalid_state']);
    assert.deepEqual(refusal(await buy('ada', open)), [409, 'invalid_state']);
    assert.deepEqual(refusal(await decide(id, 'accept')), [409, 'invalid_state']);
    assert.deepEqual(await sum(), before);
    await given.setState('active');
    assert.equal((await decide(id, 'accept')).status, 200);
  });
});

test('what a cluster reports to have excludes as what was bought does', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const report = slurmReport();
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

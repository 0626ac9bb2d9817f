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
import { updateRows } from '../../src/store/engine/rows.ts';
import { alpha, beta, eventually, loginless, physics, physicsWith, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { everyKind, openTestStore, requireRow, slurmReport } from '../support/store.ts';

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
  clusters: [...loginless, more('gamma', gamma, 'chemistry'), more('delta', delta, 'physics')],
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
    cluster: () => requireRow(store.read, 'clusters', { id: alpha }),
    audit: () =>
      service
        .business('/operator/audit?order=newest&limit=1', { as: 'root' })
        .then(({ body }) => body.entries[0]),
    setState: (state: 'active' | 'releasing') =>
      store.write(({ db }) => updateRows(db, 'clusters', { id: alpha }, { state })),
    /** Quotes and buys; the purchase. */
    bought: async (body: { target_cluster_id?: string; [name: string]: unknown } = {}) => {
      const reply = await buy('ada', (await quote('ada', body)).body.id, body.target_cluster_id);
      assert.equal(reply.status, 201, JSON.stringify(reply.body));
      return reply.body;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

// What a quote, a total and a decision follow from: test/domain/storage-purchase.test.ts.
test('storage is quoted, asked for once, and accepted or declined by an operator', async () => {
  await using given = await start();
  const { service, store, org, quote, buy, decide, sum, cluster, audit } = given;
  const me = async (as: string) => (await service.business('/me', { as })).body.user.id;
  for (const as of ['ada', 'amy']) {
    const { status, body } = await quote(as);
    assert.equal(status, 201);
    const { id, created_at, expires_at, ...rest } = body;
    assert.match(id, /^quote_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), quoteLifetimeMs);
    const common = { organization_id: org, target_cluster_id: alpha, storage_type: 'ceph' };
    assert.deepEqual(rest, { ...common, bytes: tebibyte, current_bytes: 0, total_bytes: tebibyte });
  }
  for (const target_cluster_id of [gamma, 'nonsense', crypto.randomUUID()]) {
    refused(await quote('ada', { target_cluster_id }), 404, 'not_found');
  }
  for (const bytes of [0, -tebibyte, 0.5, 2 ** 50 + 1, '1'])
    refused(await quote('ada', { bytes }), 422, 'invalid_request');
  for (const body of [{ storage_type: 'weka' }, { shrink: true }])
    refused(await quote('ada', body), 422, 'invalid_request');

  // A purchase needs a quote of this organization and this cluster.
  const own = (await quote('ada')).body.id;
  const token = await service.issuer.token('carl', { email: 'carl@chemistry.example' });
  const chemistry = (await service.business('/me', { token })).body.default_org_id;
  const foreign = await service.write(`/organizations/${chemistry}/purchases/quotes`, {
    token,
    body: { target_cluster_id: gamma, storage_type: 'ceph', bytes: 1 },
  });
  assert.equal(foreign.status, 201);
  for (const [id, target] of [
    [foreign.body.id, alpha],
    [foreign.body.id, gamma],
    ['quote_01JD0000000000000000000000', alpha],
    ['x'.repeat(10_000), alpha],
    [own, beta],
    [own, gamma],
  ] as const) {
    refused(await buy('ada', id, target), 404, 'not_found');
  }
  assert.deepEqual(await listPurchases(store.read), [], 'a quote buys nothing');

  // NFS excludes Ceph, whichever was quoted first.
  const ceph = { target_cluster_id: delta };
  const nfs = { ...ceph, storage_type: 'nfs' };
  assert.equal((await decide((await given.bought(nfs)).id, 'decline')).status, 200);
  const early = (await quote('ada', ceph)).body.id;
  const { id: wanted } = await given.bought(nfs);
  refused(await buy('ada', early, delta), 409, 'invalid_state');
  refused(await quote('ada', ceph), 409, 'invalid_state');
  assert.equal((await decide(wanted, 'accept')).status, 200);
  assert.deepEqual(await sum(delta), { ceph: 0, nfs: tebibyte });
  refused(await quote('ada', ceph), 409, 'invalid_state');
  assert.equal((await quote('ada', nfs)).body.current_bytes, tebibyte);

  const quoted = (await quote('amy')).body.id;
  const unchanged = (await cluster()).desired_generation;
  // In the other case, it is the same cluster.
  const { status, body: purchase } = await buy('amy', quoted, alpha.toUpperCase());
  assert.equal(status, 201);
  const { id, created_at, ...rest } = purchase;
  assert.match(id, /^purchase_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.ok(Date.parse(created_at));
  assert.deepEqual(rest, {
    ...{ organization_id: org, target_cluster_id: alpha, storage_type: 'ceph', bytes: tebibyte },
    ...{ quote_id: quoted, state: 'requested', created_by_user_id: await me('amy') },
  });
  assert.deepEqual(await sum(), { ceph: 0, nfs: 0 }, 'it counts for nothing yet');
  assert.equal((await cluster()).desired_generation, unchanged);
  const asked = await audit();
  assert.deepEqual([asked.target, asked.cluster_id], [id, alpha]);
  assert.match(asked.details, /1099511627776 bytes of ceph for alpha/);
  const { purchases } = (await service.business('/operator/purchases', { as: 'root' })).body;
  assert.deepEqual(purchases.at(-1), purchase);

  // A quote is good once, and of several at the same instant one wins.
  refused(await buy('ada', quoted), 409, 'invalid_state');
  const once = (await quote('ada')).body.id;
  const replies = await Promise.all(['ada', 'amy', 'ada', 'amy'].map((as) => buy(as, once)));
  assert.deepEqual(fieldsOf(replies, 'status').sort(), [201, 409, 409, 409]);
  const declined = replies.find((reply) => reply.status === 201)?.body.id;
  const { body: state } = await decide(declined, 'decline');
  assert.equal(state.state, 'declined');
  for (const decision of ['accept', 'decline'] as const) {
    refused(await decide(declined, decision), 409, 'invalid_state');
  }

  const waiting = (await quote('ada')).body.id;
  const seen: Change[] = [];
  using _ = { [Symbol.dispose]: store.onChange(everyKind, (changes) => void seen.push(...changes)) };
  const before = await cluster();
  assert.equal(before.desired_generation, unchanged);
  const accepted = await decide(id, 'accept');
  assert.deepEqual([accepted.status, accepted.body], [200, { ...purchase, state: 'active' }]);
  assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });
  const after = await cluster();
  assert.equal(after.desired_generation, before.desired_generation + 1);
  assert.equal(after.version, before.version + 1);
  assert.ok(seen.some((change) => change.kind === 'cluster' && change.clusterId === alpha));
  const entry = await audit();
  assert.deepEqual([entry.target, entry.subject_user_id], [id, await me('amy')]);
  assert.match(entry.details, /requested → active/);
  const again = await decide(id, 'accept');
  assert.deepEqual([again.status, again.body], [200, accepted.body], 'again changes nothing');
  assert.equal((await cluster()).desired_generation, after.desired_generation);
  assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });
  refused(await buy('ada', waiting), 409, 'invalid_state', /has grown since this quote; ask for a new quote/);
  const { current_bytes, total_bytes } = (await quote('ada')).body;
  assert.deepEqual([current_bytes, total_bytes], [tebibyte, 2 * tebibyte]);

  // The cluster must be in service when it is quoted, bought and accepted.
  const open = (await quote('ada')).body.id;
  const { id: late } = await given.bought();
  await given.setState('releasing');
  for (const reply of [await quote('ada'), await buy('ada', open), await decide(late, 'accept')]) {
    refused(reply, 409, 'invalid_state');
  }
  assert.deepEqual(await sum(), { ceph: tebibyte, nfs: 0 });
  await given.setState('active');
  assert.equal((await decide(late, 'accept')).status, 200);
});

test('what a cluster reports to have excludes as what was bought does', async () => {
  await using store = await openTestStore(physics);
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

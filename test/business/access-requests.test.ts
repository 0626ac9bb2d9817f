/** Access requests: asking, deciding, and all that can come between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listRows } from '../../src/store/engine/rows.ts';
import { alpha, beta, eventually, startTestApp, type TestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { refused } from '../support/refused.ts';
import { organizationOf } from './organization.ts';

const hour = 3_600_000;
const day = 24 * hour;
const idOf = ({ id }: { id: string }) => id;
const stateOf = ({ state }: { state: string }) => state;

async function helpers(service: TestApp) {
  const organization = await organizationOf(service);
  const { requests, permit } = organization;
  return {
    ...organization,
    withdraw: (as: string, id: string) => service.write(`/me/access-requests/${id}/withdraw`, { as }),
    own: async (as: string) => (await service.business('/me/access-requests', { as })).body.requests,
    open: async () => (await service.business(requests, { as: 'ada' })).body.requests,
    set: (permissions: string[], ends?: object) => permit('ada', 'bob', permissions, ends),
  };
}

test('a member asks, an owner approves with one click, the access comes, is extended, and ends by itself', async () => {
  await using service = await startTestApp();
  const { ask, decide, own, open, held, org } = await helpers(service);
  const reason = 'runs for the paper <b>&"\u202e';
  const body = {
    permissions: ['clusters.ssh', 'clusters.read', 'clusters.ssh'],
    cluster_id: alpha.toUpperCase(),
    hours: 48,
  };
  const asked = await ask('eve', body, { reason: encodeURIComponent(reason) });
  assert.equal(asked.status, 201);
  const { id, lapses_at: lapses, created_at: since } = asked.body;
  assert.match(id, /^access_request_[0-9A-Z]{26}$/);
  assert.equal(Date.parse(lapses) - Date.parse(since), 14 * day);
  assert.deepEqual(
    [asked.body.state, asked.body.permissions, asked.body.cluster_id, asked.body.hours, asked.body.email],
    ['open', ['clusters.read', 'clusters.ssh'], alpha, 48, 'eve@physics.example'],
  );
  assert.deepEqual((await open()).map(idOf), [id]);
  assert.equal((await held('eve')).permissions.length, 0, 'asking gives nothing');

  const before = Date.now();
  const approved = await decide('ada', id, 'approve', { reason: 'welcome' });
  assert.equal(approved.status, 200);
  const { expires_at: end, decided_by: by, state, decision_reason: words } = approved.body;
  assert.deepEqual([state, by, words], ['approved', 'ada@physics.example', 'welcome']);
  assert.ok(Date.parse(end) >= before + 2 * day && Date.parse(end) <= Date.now() + 2 * day);
  assert.deepEqual((await held('eve')).expires_at, { 'clusters.read': end, 'clusters.ssh': end });
  const twice = await decide('ada', id, 'approve');
  refused(twice, 409, 'invalid_state', /was approved already by ada@physics\.example/);
  assert.deepEqual(await open(), []);
  const access = () => service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'eve' });
  await eventually(access, ({ status, body: { reason: why } }) => status === 200 && why === 'no_keys');

  const more = await ask('eve', { permissions: ['clusters.ssh'], hours: 24 * 30 });
  assert.equal(more.status, 201, 'more time is asked for in the same way');
  const other = new Date(Date.now() + 10 * day).toISOString();
  const term = await decide('ada', more.body.id, 'approve', { body: { expires_at: other } });
  assert.equal(term.body.expires_at, other);
  assert.deepEqual((await held('eve')).expires_at, { 'clusters.read': end, 'clusters.ssh': other });
  const less = await ask('eve', { permissions: ['clusters.ssh'], hours: 1 });
  await decide('ada', less.body.id, 'approve');
  assert.equal((await held('eve')).expires_at['clusters.ssh'], other, 'an approval shortens nothing');

  service.advance(11 * day);
  assert.equal((await access()).status, 403);
  assert.deepEqual((await own('eve')).map(stateOf), ['approved', 'approved', 'approved']);
});

test('a request is declined with a reason, or withdrawn, or lapses; then it cannot be decided any more', async () => {
  await using service = await startTestApp();
  const { ask, decide, withdraw, own, open, held, requests } = await helpers(service);
  const first = (await ask('eve', { permissions: ['clusters.ssh'], hours: 1 })).body.id;
  const no = await decide('ada', first, 'decline', { reason: 'use beta until May' });
  assert.deepEqual(
    [no.status, no.body.state, no.body.decision_reason],
    [200, 'declined', 'use beta until May'],
  );
  assert.equal((await own('eve'))[0].decision_reason, 'use beta until May');
  assert.match((await decide('ada', first, 'approve')).body.message, /was declined already by ada/);
  assert.match((await withdraw('eve', first)).body.message, /was declined already/);

  const second = (await ask('eve', { permissions: ['clusters.ssh'] })).body.id;
  assert.equal((await withdraw('eve', second)).body.state, 'withdrawn');
  assert.equal((await withdraw('eve', second)).status, 200, 'again is the same');
  assert.match((await decide('ada', second, 'approve')).body.message, /was withdrawn/);
  assert.match((await decide('ada', second, 'decline')).body.message, /was withdrawn/);

  const third = (await ask('eve', { permissions: ['clusters.ssh'] })).body.id;
  service.jump(14 * day);
  assert.equal((await own('eve'))[0].state, 'lapsed');
  assert.deepEqual(await open(), []);
  assert.match((await decide('ada', third, 'approve')).body.message, /has lapsed/);
  const all = await service.business(`${requests}?state=all`, { as: 'ada' });
  assert.deepEqual(all.body.requests.map(idOf), [third, second, first]);
  assert.deepEqual(all.body.requests.map(stateOf), ['lapsed', 'withdrawn', 'declined']);
  assert.deepEqual((await held('eve')).permissions, []);
});

test('who may not decide does not, and a decider gives nothing that they do not hold', async () => {
  await using service = await startTestApp();
  const { ask, decide, set, held } = await helpers(service);
  const { id } = (await ask('eve', { permissions: ['clusters.kubernetes', 'clusters.ssh'], hours: 48 })).body;
  await set(['members.manage', 'clusters.ssh']);
  refused(await decide('bob', id, 'approve'), 403, 'forbidden', /cannot grant clusters\.kubernetes/);
  const soon = new Date(Date.now() + day).toISOString();
  await set(['members.manage', 'clusters.ssh', 'clusters.kubernetes'], {
    'clusters.kubernetes': soon,
  });
  assert.match((await decide('bob', id, 'approve')).body.message, /You hold clusters\.kubernetes until/);
  const earlier = new Date(Date.now() + hour).toISOString();
  assert.equal((await decide('bob', id, 'approve', { body: { expires_at: earlier } })).status, 200);
  assert.deepEqual((await held('eve')).expires_at, {
    'clusters.kubernetes': earlier,
    'clusters.ssh': earlier,
  });
  await set(['members.manage']);
  const own = (await ask('bob', { permissions: ['clusters.read'] })).body.id;
  refused(await decide('bob', own, 'decline'), 403, /You asked for this yourself/);
});

test('what cannot be asked for is refused, and only a few wait at a time', async () => {
  await using service = await startTestApp();
  const { ask, decide, set } = await helpers(service);
  const status = async (as: string, body: object) => {
    const reply = await ask(as, body);
    return `${reply.status} ${reply.body.code}`;
  };
  assert.equal(await status('eve', { permissions: [] }), '422 invalid_request');
  assert.equal(await status('eve', { permissions: ['clusters.everything'] }), '400 invalid_request');
  assert.equal(await status('eve', { permissions: ['organization.admin'] }), '400 invalid_request');
  for (const hours of [0, -1, 1.5, 8785, '4']) {
    assert.equal(await status('eve', { permissions: ['clusters.ssh'], hours }), '422 invalid_request');
  }
  const nowhere = { permissions: ['clusters.ssh'], cluster_id: '00000000-0000-4000-8000-000000000000' };
  assert.equal(await status('eve', nowhere), '404 not_found');
  assert.equal(await status('ada', { permissions: ['clusters.ssh'] }), '409 invalid_state');
  assert.equal(await status('bob', { permissions: ['clusters.ssh', 'clusters.read'] }), '409 invalid_state');
  await set(['clusters.configure']);
  // Held by another.
  assert.equal(await status('bob', { permissions: ['clusters.ssh'] }), '409 invalid_state');

  // Two tabs: the second is told of the first.
  assert.equal((await ask('eve', { permissions: ['clusters.ssh'] })).status, 201);
  const twice = await ask('eve', { permissions: ['clusters.ssh'] });
  assert.match(twice.body.message, /You have asked for this already/);
  for (const cluster_id of [alpha, beta]) {
    assert.equal((await ask('eve', { permissions: ['clusters.ssh'], cluster_id })).status, 201);
  }
  assert.equal((await ask('eve', { permissions: ['clusters.read'] })).status, 201);
  const { body: fifth } = await ask('eve', { permissions: ['clusters.kubernetes'] });
  const sixth = await ask('eve', { permissions: ['members.manage'] });
  assert.match(sixth.body.message, /5 requests of yours are open/);
  for (const sent of [new Date(Date.now() - 1000).toISOString(), 'soon', 7]) {
    const reply = await decide('ada', fifth.id, 'approve', { body: { expires_at: sent } });
    assert.ok([400, 422].includes(reply.status), String(sent));
  }
  const forGood = await decide('ada', fifth.id, 'approve', { body: { expires_at: null } });
  assert.deepEqual([forGood.status, forGood.body.expires_at], [200, undefined]);
  assert.equal((await ask('eve', { permissions: ['members.manage'] })).status, 201);
});

test('requests go with their person, and what is gone cannot be approved', async () => {
  await using service = await startTestApp();
  const { ask, decide, open, org, ids, withdraw } = await helpers(service);
  const first = (await ask('eve', { permissions: ['clusters.ssh'] })).body.id;
  const role = (value: string) =>
    service.put('ada', `/organizations/${org}/members/${ids['eve']}/role`, { role: value });
  await role('admin');
  assert.deepEqual(await open(), [], 'who holds everything asks for nothing');
  assert.equal((await decide('ada', first, 'approve')).status, 404);
  await role('member');
  const second = (await ask('eve', { permissions: ['clusters.ssh'] })).body.id;
  await service.write(`/organizations/${org}/members/${ids['eve']}/remove`, { as: 'ada' });
  assert.equal((await decide('ada', second, 'approve')).status, 404);
  assert.equal((await withdraw('eve', second)).status, 404);
  assert.equal((await ask('eve', { permissions: ['clusters.ssh'] })).status, 404);
});

test('what was written is in the audit trail, is bounded, and goes with retention and erasure', async () => {
  await using service = await startTestApp();
  const { ask, decide, ids, withdraw } = await helpers(service);
  const { store } = service.app;
  for (let i = 0; i < 25; i++) {
    const { id } = (await ask('bob', { permissions: ['clusters.kubernetes'], hours: 24 })).body;
    await withdraw('bob', id);
  }
  const kept = () => listRows(store.read, 'access_requests', {});
  assert.equal((await kept()).length, 20);
  const reason = 'as eve@physics.example has';
  const { id } = (await ask('bob', { permissions: ['clusters.kubernetes'] }, { reason })).body;
  await decide('ada', id, 'decline', { reason: 'eve@physics.example has left' });
  const { id: hers } = (await ask('eve', { permissions: ['clusters.ssh'] }, { reason: 'secret plans' })).body;
  await decide('ada', hers, 'approve');
  const entries = await listRows(store.read, 'audit_entries', { target: hers });
  assert.deepEqual(fieldsOf(entries, 'operation', 'details', 'result').sort(), [
    ['approveAccessRequest', 'permissions none → clusters.ssh', 'done'],
    ['requestAccess', 'clusters.ssh without an end', 'done'],
  ]);

  await service.write(`/operator/people/${ids['eve']}/deactivate`, { as: 'root' });
  assert.ok((await kept()).every(({ user_id: one }) => one !== ids['eve']));
  await service.write(`/operator/people/${ids['eve']}/erase`, { as: 'root' });
  await eventually(kept, (rows) => !JSON.stringify(rows).includes('eve@'));
  const isErased = ({ reason, decision_reason: why }: { reason: string; decision_reason: string | null }) =>
    /erased/.test(reason) && /has left/.test(why ?? '');
  assert.ok((await kept()).some(isErased));
});

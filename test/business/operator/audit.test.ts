/** The audit trail over the API, and texts in every field of it that a database does not give back as they were hashed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadDocument, operationsOf } from '../../../src/api/http/document.ts';
import { type AuditRecord, findBreak } from '../../../src/domain/audit/audit.ts';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { appendAuditEntry, listAuditEntries } from '../../../src/store/audit/audit.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { updateRows } from '../../../src/store/engine/rows.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { alpha, loginless, physics, type Reply, startTestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';
import { refused } from '../../support/refused.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { isOnFile, openTestStore } from '../../support/store.ts';
import { organizationOf } from '../organization.ts';
import { type Given, rows } from '../writes-table.ts';

const lab: Lab = {
  ...{ ...physics, clusters: loginless },
  users: [...(physics.users ?? []), { email: 'otto@physics.example', staff: ['staff.audit'] }],
};

/** As the API shows it: what is not known is left out there and null in the chain. */
function record(entry: Reply['body']): AuditRecord & { hash: string } {
  return { command_id: null, organization_id: null, cluster_id: null, subject_user_id: null, ...entry };
}

async function open() {
  const service = await startTestApp({ lab });
  const me = (await service.business('/me', { as: 'ada' })).body;
  const whole = async (query = '', as = 'otto'): Promise<Reply['body'][]> =>
    (await service.business(`/operator/audit?limit=1000${query}`, { as })).body.entries;
  return {
    ...{ service, me, whole, org: me.default_org_id as string },
    trail: async (query = '') => (await whole(query)).filter((one) => one.operation !== 'bindIdentity'),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('who, what, on what, why, when, from where, and the result', async () => {
  await using opened = await open();
  const { service, me, whole, trail } = opened;
  const first = (await whole()).find((one) => one.operation === 'bindIdentity');
  assert.equal(first.actor_email, 'ada@physics.example');
  assert.match(first.details, /^subject-ada of http/);

  const key = { public_key: newPublicKey() };
  const { body } = await service.write('/me/ssh-keys', { as: 'ada', reason: 'new läptop', body: key });
  const { seq, at, hash, ...rest } = (await trail()).at(-1);
  assert.ok(seq > 1 && hash.startsWith('sha256:') && Math.abs(Date.parse(at) - Date.now()) < 60_000);
  const { id, display_name: name } = me.user;
  assert.deepEqual(rest, {
    ...{ actor_user_id: id, actor_email: 'ada@physics.example', actor_name: name },
    ...{ command_id: body.command_id, operation: 'registerSshKey', target: body.ssh_key.id },
    ...{ subject_user_id: id, subject_email: 'ada@physics.example', subject_name: name },
    ...{ reason: 'new läptop', source_address: '127.0.0.1', result: 'done' },
    details: body.ssh_key.fingerprint,
  });

  // Refused attempts too, with the sentence; malformed requests leave nothing.
  const { length } = await trail();
  const call = { as: 'bob', reason: 'I want' };
  const release = await service.write('/operator/clusters/nonsense/release', call);
  await service.write('/me/ssh-keys', { as: 'ada', body: { public_key: 'nonsense' } });
  const [entry, ...none] = (await trail()).slice(length);
  const { target, result, details } = entry;
  assert.deepEqual([target, result, details], ['nonsense', 'refused: forbidden', release.body.message]);
  assert.deepEqual(none, []);
  const [refusals, done] = [await whole('&result=refused'), await whole('&result=done')];
  assert.deepEqual(refusals, [entry]);
  assert.ok(done.every((one) => one.result === 'done'));
  assert.equal(1 + done.length, (await whole()).length);
  // So is reaching for a role's own key.
  const { ids, permit } = await organizationOf(service);
  assert.equal((await permit('bob', 'bob', ['organization.owner'])).status, 400);
  const owner = (await trail()).at(-1);
  assert.deepEqual([owner.operation, owner.result], ['setMemberPermissions', 'refused: invalid_request']);
  assert.match(owner.details, /organization\.owner/);

  // By person (who did it, or to whom), by cluster, by time; paged by seq.
  await permit('ada', 'bob', ['clusters.read']);
  const ofBob = await trail('&person=BOB@physics.example');
  assert.deepEqual(await trail(`&person=${ids['bob']}`), ofBob, 'by ID as by email');
  assert.deepEqual(fieldsOf(ofBob, 'operation', 'actor_email'), [
    ['operatorReleaseCluster', 'bob@physics.example'],
    ['setMemberPermissions', 'bob@physics.example'],
    ['setMemberPermissions', 'ada@physics.example'],
  ]);
  assert.equal(ofBob[2].details, 'permissions clusters.read, clusters.ssh → clusters.read');
  await service.write(`/operator/clusters/${alpha.toUpperCase()}/release`, { as: 'bob' });
  assert.deepEqual(fieldsOf(await trail(`&cluster=${alpha}`), 'result'), ['refused: forbidden']);
  const time = encodeURIComponent(ofBob[2].at);
  assert.deepEqual((await trail(`&from=${time}`))[0].seq, ofBob[2].seq);
  assert.ok((await trail(`&to=${time}`)).every((one) => one.seq < ofBob[2].seq));
  const all = await whole();
  const read = (query: string) => service.business(`/operator/audit?${query}`, { as: 'otto' });
  for (const [query, expected] of [
    [`limit=2&after=${all[2].seq}`, all.slice(3, 5)],
    ['order=newest&limit=2', all.slice(-2).toReversed()],
    [`order=newest&limit=3&after=${all[4].seq}`, all.slice(1, 4).toReversed()],
  ] as const) {
    assert.deepEqual((await read(query)).body.entries, expected, query);
  }
  for (const query of ['limit=1001', 'from=yesterday']) assert.equal((await read(query)).status, 422);
});

test('one person cannot fill it with refusals', async () => {
  await using opened = await open();
  const { service, org, trail } = opened;
  const before = (await trail()).length;
  for (let i = 0; i < 80; i++) await service.write('/operator/clusters/x/release', { as: 'eve' });
  assert.equal((await trail()).length, before + 60);
  service.advance(60_000);
  await service.write('/operator/grants/y/revoke', { as: 'eve' });
  const [summary, last, ...none] = (await trail()).slice(before + 60);
  assert.equal(summary.details, '20 × operatorReleaseCluster on x', 'what had no entry is summed up');
  assert.deepEqual([last.operation, none], ['operatorRevokeGrant', []]);

  // No one puts long texts of their own into it, nor IDs that cannot be ours.
  const long = 'x'.repeat(12_000);
  const grant = { email: 'e@physics.example', cluster_id: long, relation: 'kubernetes.viewer' };
  const configuration = `/organizations/${long}/scheduler-configuration`;
  for (const attempt of [
    () => service.platform(configuration, { as: 'otto', method: 'PUT', body: {} }),
    () => service.write('/operator/grants', { as: 'otto', body: grant }),
    () => service.write(`/operator/clusters/${long}/release`, { as: 'otto' }),
    () => service.write(`/organizations/${long}/retire`, { as: 'otto' }),
  ]) {
    const { length } = await trail();
    assert.ok([403, 404].includes((await attempt()).status));
    const [entry, ...more] = (await trail()).slice(length);
    const { target, organization_id, cluster_id, details } = entry;
    assert.deepEqual([organization_id, cluster_id, more], [undefined, undefined, []]);
    assert.ok(target.length <= 200 && details.length <= 2000);
    assert.ok(target === 'grant' || target.endsWith('x…'), target);
  }
  const domains = Array.from({ length: 200 }, (_, index) => `${'d'.repeat(50)}${index}.example`);
  const body = { auto_join_domains: domains };
  assert.equal((await service.put('root', `/operator/organizations/${org}`, body)).status, 200);
  const { organization_id, details } = (await trail()).at(-1);
  assert.deepEqual([organization_id, details.length, details.at(-1)], [org, 2000, '…']);
});

test('nothing has a name with NUL, nor is it stored, and no request gets a 500', async () => {
  await using opened = await open();
  const { service, me, org, trail } = opened;
  for (const [api, path, status] of [
    ['business', '/organizations/org_%00/members', 404],
    ['business', `/organizations/${org}/clusters/%00`, 404],
    ['business', `/organizations/${org}/members/user_%00/permissions`, 404],
    ['business', '/resource-access?kind=kubernetes_cluster&id=%00&gate=read', 403],
    ['business', '/operator/audit?person=%00&operation=%00', 200],
    ['business', '/operator/people?email=%00', 403],
    ['platform', '/clusters?businessOrgId=org_%00', 403],
    ['platform', `/clusters?businessOrgId=${org}&after=%00`, 400],
    ['platform', `/clusters/%00?businessOrgId=${org}`, 400],
    ['platform', `/clusters/${alpha}/ssh-access?organizationId=%00`, 403],
    ['platform', '/organizations/%00/storage', 403],
  ] as const) {
    const reply = await service[api](path, { as: path.startsWith('/operator') ? 'otto' : 'ada' });
    assert.equal(reply.status, status, `${path}: ${JSON.stringify(reply.body)}`);
  }
  const withdrawn = await service.write('/me/access-requests/a%00b/withdraw', { as: 'ada' });
  assert.equal(withdrawn.status, 404, JSON.stringify(withdrawn.body));
  assert.equal((await trail()).at(-1).target, 'a\ufffdb');
  const configuration = `/clusters/${alpha}/scheduler-configuration?businessOrgId=${org}`;
  const put = (body: object | string) => service.platform(configuration, { as: 'ada', method: 'PUT', body });
  for (const body of ['{"slurmExtraConfig":"a\\u0000"}', '{"prolog":{"a\\u0000":"#!"}}']) {
    refused(await put(body), 400, 'invalid_request', /has a NUL character \(\\u0000\)/);
  }
  const literal = await put({ slurmExtraConfig: '\\u0000' });
  assert.deepEqual([literal.status, literal.body.slurmExtraConfig], [200, '\\u0000']);
  // A text that came by another way is stored without the NUL character, and its entry verifies.
  const { store } = service.app;
  const entry = { actorUserId: me.user.id, operation: 'test', result: 'done' } as const;
  const texts = { target: 'x\0', reason: '\0y', details: 'z\0z' };
  await store.write((tx) => appendAuditEntry(tx, { ...entry, ...texts }));
  const { target, reason, details } = (await trail()).at(-1);
  assert.deepEqual([target, reason, details], ['x\ufffd', '\ufffdy', 'z\ufffdz']);
  await store.write(({ db }) => updateRows(db, 'users', { id: me.user.id }, { display_name: 'A\0da' }));
  assert.equal((await service.business('/me', { as: 'ada' })).body.user.display_name, 'A\ufffdda');
});

test('the database refuses to change or drop an entry; what gets round that shows', async () => {
  await using opened = await open();
  const { elsewhere, business } = opened.service;
  for (const as of ['bob', 'otto']) await business('/me', { as });
  const breakIn = async () => findBreak({ seq: 0, hash: '' }, (await opened.whole()).map(record));
  assert.equal(await breakIn(), undefined);
  const fails = (statement: string) => assert.rejects(elsewhere(statement), /append-only/);
  await fails("update audit_entries set reason = 'other' where seq = 2");
  await fails('delete from audit_entries where seq = 2');
  const again = 'into audit_entries select * from audit_entries where seq = 2';
  await fails(isOnFile ? `insert or replace ${again}` : `insert ${again} on conflict do nothing`);
  await elsewhere(isOnFile ? 'drop trigger audit_entries_stay' : 'drop function audit_entries_stay cascade');
  await elsewhere("update audit_entries set reason = 'other' where seq = 2");
  assert.equal((await breakIn())?.seq, 2);
});

/** An emoji across each bound that a text is cut at, in units of UTF-16 and in code points. */
const acrossCuts = [78, 79, 80, 81, 198, 199, 200].map(
  (length) => `${'x'.repeat(length)}${'😀'.repeat(130)}`,
);
const longer = [1998, 1999, 2000].map((length) => `${'x'.repeat(length)}😀😀`);
const unstorable = [
  '\ud83d',
  '\ude00x',
  'a\ud83d\ud83d\ude00\0',
  '\0'.repeat(5000),
  `${'\ud800'.repeat(3000)}`,
];
const others = ['', '\u202e\u2028\ufeff', '"\\\n\t\u007f', '😀'.repeat(5000), 'e\u0301'.repeat(3000)];

async function requireWhole(store: Store): Promise<number> {
  const entries = await listAuditEntries(store.read, {}, { after: 0, limit: 100_000 });
  assert.equal(findBreak({ seq: 0, hash: '' }, entries)?.seq, undefined);
  return entries.length;
}

test('whatever text an entry of the audit trail is given, its hash is of the text that is stored', async () => {
  await using store = await openTestStore(physics);
  const before = await requireWhole(store);
  const fields = ['operation', 'target', 'reason', 'sourceAddress', 'result', 'details'] as const;
  const ids = ['organizationId', 'clusterId', 'subjectUserId'] as const;
  const texts = [...acrossCuts, ...longer, ...unstorable, ...others];
  const plain = { actorUserId: systemUserId, operation: 'test', target: 't', reason: 'r', result: 'done' };
  for (const text of texts)
    await store.write(async (tx) => {
      for (const field of [...fields, ...ids]) await appendAuditEntry(tx, { ...plain, [field]: text });
    });
  assert.equal(await requireWhole(store), before + texts.length * (fields.length + ids.length));
});

/** What a request is made from, where only its shape counts. */
const made = {
  ...{
    id: 'x',
    user_id: 'x',
    user: {},
    ssh_key: { id: 'x' },
    organization: { id: 'x' },
    cluster: { id: 'x' },
  },
  ...{ grant: { id: 'x' }, machines: [{ id: 'x' }], requests: [] },
};
const answer = async () => ({ body: made });
const nothing = {
  ...{ org: 'x', ids: new Map(), tokens: new Map(), next: () => 1, make: async () => made },
  service: { business: answer, write: answer },
} as unknown as Given;

test('no request to the APIs, whatever its texts are, breaks the chain of the audit trail', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  let sent = 0;
  for (const api of ['business', 'platform'] as const) {
    const writes = await Promise.all(
      operationsOf(loadDocument(api))
        .filter(({ method }) => method !== 'get')
        .map(async (one) => ({ ...one, body: (await rows[one.operationId]?.wish(nothing, 'ada'))?.body })),
    );
    for (const [round, text] of [...acrossCuts, ...longer, '\0', 'x\ufffd'].entries()) {
      service.advance(60_000);
      const segment = encodeURIComponent(text);
      const reason = Buffer.from([...text].slice(-400).join('').trim()).toString('latin1');
      for (const { method, route, body } of writes) {
        const call = {
          as: round % 2 === 0 ? 'ada' : 'root',
          method: method.toUpperCase(),
          headers: { 'Idempotency-Key': `k${++sent}`, ...(text !== '\0' && { 'Audit-Reason': reason }) },
          ...(body && { body: filled(body, text) }),
        };
        const reply = await service[api](route.replaceAll(/:\w+/g, segment), call);
        assert.ok(reply.status < 500, `${method} ${route}: ${reply.status}`);
      }
    }
  }
  const release = (id: string) =>
    service.write(`/operator/clusters/${encodeURIComponent(id)}/release`, { as: 'bob' });
  // What is beyond the bound of a minute is summed up, under shortened targets.
  for (let count = 0; count < 60; count++) await release('none');
  for (const text of acrossCuts) await release(text);
  service.advance(60_000);
  await release('none');
  const { status, body } = await service.business('/operator/audit/head', { as: 'root' });
  assert.deepEqual([status, body.message], [200, undefined]);
  const { entries } = (await service.business('/operator/audit?order=newest&limit=1000', { as: 'root' }))
    .body;
  const has = (text: string) => entries.some((one: object) => JSON.stringify(one).includes(text));
  for (const text of ['furtherRefusals', ` ${'x'.repeat(79)}😀; `, '😀…', '\ufffd'])
    assert.ok(has(text), text);
});

/** The value with the text in the place of each of its texts. */
function filled(value: unknown, text: string): unknown {
  if (typeof value === 'string') return text;
  if (Array.isArray(value)) return value.length === 0 ? [text] : value.map((one) => filled(one, text));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, text)]));
}

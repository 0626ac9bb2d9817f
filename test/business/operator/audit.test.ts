import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditRecord } from '../../../src/domain/audit/audit.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { appendAuditEntry } from '../../../src/store/audit/audit.ts';
import { alpha, physics, type Reply, startTestApp } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { isOnFile } from '../../support/store.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'otto@physics.example', staff: ['staff.audit'] }],
};

/** As the API shows it: what is not known is left out there and null in the chain. */
function record(entry: Reply['body']): AuditRecord & { hash: string } {
  return { command_id: null, organization_id: null, cluster_id: null, subject_user_id: null, ...entry };
}

test('the audit trail', async (t) => {
  await using service = await startTestApp({ lab });
  const me = (await service.business('/me', { as: 'ada' })).body;
  const org: string = me.default_org_id;
  const whole = async (query = '', as = 'otto'): Promise<Reply['body'][]> =>
    (await service.business(`/operator/audit?limit=1000${query}`, { as })).body.entries;
  const trail = async (query = '') =>
    (await whole(query)).filter((entry) => entry.operation !== 'bindIdentity');

  await t.test('the first sign-in with an identity is in it', async () => {
    const entry = (await whole()).find((one) => one.operation === 'bindIdentity');
    assert.equal(entry.actor_email, 'ada@physics.example');
    assert.match(entry.details, /^subject-ada of http/);
  });

  await t.test('who, what, on what, why, when, from where, and the result', async () => {
    const reply = await service.write('/me/ssh-keys', {
      as: 'ada',
      reason: 'new läptop',
      body: { public_key: newPublicKey() },
    });
    const entry = (await trail()).at(-1);
    const { seq, at, hash, ...rest } = entry;
    assert.ok(seq > 1 && hash.startsWith('sha256:') && Math.abs(Date.parse(at) - Date.now()) < 60_000);
    assert.deepEqual(rest, {
      actor_user_id: me.user.id,
      actor_email: 'ada@physics.example',
      actor_name: me.user.display_name,
      command_id: reply.body.command_id,
      operation: 'registerSshKey',
      target: reply.body.ssh_key.id,
      subject_user_id: me.user.id,
      subject_email: 'ada@physics.example',
      subject_name: me.user.display_name,
      reason: 'new läptop',
      source_address: '127.0.0.1',
      result: 'done',
      details: reply.body.ssh_key.fingerprint,
    });
  });

  await t.test('refused attempts too, with the sentence; malformed requests leave nothing', async () => {
    const before = (await trail()).length;
    const call = { as: 'bob', reason: 'I want' };
    const refused = await service.write('/operator/clusters/nonsense/release', call);
    const entries = await trail();
    assert.equal(entries.length, before + 1);
    const { target, result, details } = entries.at(-1);
    assert.deepEqual([target, result, details], ['nonsense', 'refused: forbidden', refused.body.message]);
    const [refusals, done] = [await whole('&result=refused'), await whole('&result=done')];
    assert.deepEqual(refusals.at(-1), entries.at(-1));
    assert.ok(done.every((one) => one.result === 'done') && !refusals.some((one) => one.result === 'done'));
    assert.equal(refusals.length + done.length, (await whole()).length);
    await service.write('/me/ssh-keys', { as: 'ada', body: { public_key: 'nonsense' } });
    assert.equal((await trail()).length, before + 1);
  });

  await t.test('so is reaching for a role’s own key', async () => {
    const bob = (await service.business('/me', { as: 'bob' })).body.user.id;
    const path = `/organizations/${org}/members/${bob}/permissions`;
    const body = { permissions: ['organization.owner'] };
    assert.equal((await service.write(path, { as: 'bob', method: 'PUT', body })).status, 400);
    const { operation, result, details } = (await trail()).at(-1);
    assert.deepEqual([operation, result], ['setMemberPermissions', 'refused: invalid_request']);
    assert.match(details, /organization\.owner/);
  });

  await t.test('no one puts long texts of their own into it, nor IDs that cannot be ours', async () => {
    const long = 'x'.repeat(12_000);
    const grant = { email: 'e@physics.example', cluster_id: long, relation: 'kubernetes.viewer' };
    const configuration = `/organizations/${long}/scheduler-configuration`;
    for (const attempt of [
      () => service.platform(configuration, { as: 'otto', method: 'PUT', body: {} }),
      () => service.write('/operator/grants', { as: 'otto', body: grant }),
      () => service.write(`/operator/clusters/${long}/release`, { as: 'otto' }),
      () => service.write(`/organizations/${long}/retire`, { as: 'otto' }),
    ]) {
      const before = (await trail()).length;
      assert.ok([403, 404].includes((await attempt()).status));
      const entries = await trail();
      assert.equal(entries.length, before + 1);
      const { target, organization_id, cluster_id, details } = entries.at(-1);
      assert.deepEqual([organization_id, cluster_id], [undefined, undefined]);
      assert.ok(target.length <= 200 && details.length <= 2000);
      assert.ok(target === 'grant' || target.endsWith('x…'), target);
    }
    const domains = Array.from({ length: 200 }, (_, index) => `${'d'.repeat(50)}${index}.example`);
    const body = { auto_join_domains: domains };
    const renamed = await service.write(`/operator/organizations/${org}`, {
      as: 'root',
      method: 'PUT',
      body,
    });
    assert.equal(renamed.status, 200);
    const entry = (await trail()).at(-1);
    assert.equal(entry.organization_id, org);
    assert.ok(entry.details.length === 2000 && entry.details.endsWith('…'));
  });

  await t.test('one person cannot fill it with refusals', async () => {
    const before = (await trail()).length;
    for (let i = 0; i < 80; i++) await service.write('/operator/clusters/x/release', { as: 'eve' });
    assert.equal((await trail()).length, before + 60);
    service.advance(60_000);
    await service.write('/operator/grants/y/revoke', { as: 'eve' });
    const [summary, last, ...none] = (await trail()).slice(before + 60);
    assert.equal(summary.details, '20 × operatorReleaseCluster on x', 'what had no entry is summed up');
    assert.deepEqual([last.operation, none], ['operatorRevokeGrant', []]);
  });

  await t.test('filtered by person (who did it, or to whom), by cluster, by time; paged by seq', async () => {
    const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
    const bob = body.members.find((one: Reply['body']) => one.email.startsWith('bob')).user_id;
    await service.write(`/organizations/${org}/members/${bob}/permissions`, {
      as: 'ada',
      method: 'PUT',
      body: { permissions: ['clusters.read'] },
    });
    const ofBob = await trail('&person=BOB@physics.example');
    assert.deepEqual(await trail(`&person=${bob}`), ofBob, 'by ID as by email');
    assert.deepEqual(
      ofBob.map((entry) => [entry.operation, entry.actor_email]),
      [
        ['operatorReleaseCluster', 'bob@physics.example'],
        ['setMemberPermissions', 'bob@physics.example'],
        ['setMemberPermissions', 'ada@physics.example'],
      ],
    );
    assert.equal(ofBob[2].details, 'permissions clusters.read, clusters.ssh → clusters.read');
    await service.write(`/operator/clusters/${alpha.toUpperCase()}/release`, { as: 'bob' });
    assert.deepEqual(
      (await trail(`&cluster=${alpha}`)).map((entry) => entry.result),
      ['refused: forbidden'],
    );
    const at = encodeURIComponent(ofBob[2].at);
    assert.deepEqual((await trail(`&from=${at}`))[0].seq, ofBob[2].seq);
    assert.ok((await trail(`&to=${at}`)).every((entry) => entry.seq < ofBob[2].seq));
    const all = await whole();
    const page = await service.business(`/operator/audit?limit=2&after=${all[2].seq}`, { as: 'otto' });
    assert.deepEqual(page.body.entries, all.slice(3, 5));
    const newest = await service.business('/operator/audit?order=newest&limit=2', { as: 'otto' });
    assert.deepEqual(newest.body.entries, all.slice(-2).toReversed());
    const older = `/operator/audit?order=newest&limit=3&after=${all[4].seq}`;
    const before = await service.business(older, { as: 'otto' });
    assert.deepEqual(before.body.entries, all.slice(1, 4).toReversed());
    assert.equal((await service.business('/operator/audit?limit=1001', { as: 'otto' })).status, 422);
    assert.equal((await service.business('/operator/audit?from=yesterday', { as: 'otto' })).status, 422);
  });

  await t.test('nothing has a name with NUL, nor is it stored, and no request gets a 500', async () => {
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
    const put = (body: object | string) =>
      service.platform(configuration, { as: 'ada', method: 'PUT', body });
    for (const body of ['{"slurmExtraConfig":"a\\u0000"}', '{"prolog":{"a\\u0000":"#!"}}']) {
      const reply = await put(body);
      assert.deepEqual([reply.status, reply.body.code], [400, 'invalid_request']);
      assert.match(reply.body.message, /has a NUL character \(\\u0000\)/);
    }
    const literal = await put({ slurmExtraConfig: '\\u0000' });
    assert.deepEqual([literal.status, literal.body.slurmExtraConfig], [200, '\\u0000']);
    // A text that came by another way is stored without the NUL character, and its entry verifies.
    const entry = { actorUserId: me.user.id, operation: 'test', result: 'done' } as const;
    const texts = { target: 'x\0', reason: '\0y', details: 'z\0z' };
    await service.app.store.write((tx) => appendAuditEntry(tx, { ...entry, ...texts }));
    const { target, reason, details } = (await trail()).at(-1);
    assert.deepEqual([target, reason, details], ['x\ufffd', '\ufffdy', 'z\ufffdz']);
    const write = (name: string) =>
      service.app.store.write(({ db }) =>
        db.updateTable('users').set({ display_name: name }).where('id', '=', me.user.id).execute(),
      );
    await write('A\0da');
    assert.equal((await service.business('/me', { as: 'ada' })).body.user.display_name, 'A\ufffdda');
    await write(me.user.display_name);
  });

  await t.test('the database refuses to change or drop an entry; what gets round that shows', async () => {
    const { elsewhere } = service;
    const breakIn = async () => findBreak({ seq: 0, hash: '' }, (await whole()).map(record));
    assert.equal(await breakIn(), undefined);
    const refused = (statement: string) => assert.rejects(elsewhere(statement), /append-only/);
    await refused("update audit_entries set reason = 'other' where seq = 2");
    await refused('delete from audit_entries where seq = 2');
    const again = 'into audit_entries select * from audit_entries where seq = 2';
    await refused(isOnFile ? `insert or replace ${again}` : `insert ${again} on conflict do nothing`);
    await elsewhere(
      isOnFile ? 'drop trigger audit_entries_stay' : 'drop function audit_entries_stay cascade',
    );
    await elsewhere("update audit_entries set reason = 'other' where seq = 2");
    assert.equal((await breakIn())?.seq, 2);
  });
});

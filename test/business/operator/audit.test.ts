import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { type AuditRecord, findBreak } from '../../../src/domain/audit.ts';
import type { Lab } from '../../../src/domain/lab.ts';
import { alpha, physics, type Reply, startTestApp } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';

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
  const trail = async (query = '', as = 'otto'): Promise<Reply['body'][]> =>
    (await service.business(`/operator/audit?limit=1000${query}`, { as })).body.entries;

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
      command_id: reply.body.command_id,
      operation: 'registerSshKey',
      target: reply.body.ssh_key.id,
      subject_user_id: me.user.id,
      reason: 'new läptop',
      source_address: '127.0.0.1',
      result: 'done',
      details: reply.body.ssh_key.fingerprint,
    });
  });

  await t.test(
    'refused attempts too, with the code; replays and malformed requests leave nothing',
    async () => {
      const before = (await trail()).length;
      const refused = await service.write('/operator/clusters/nonsense/release', {
        as: 'bob',
        reason: 'I want',
      });
      assert.equal(refused.status, 403);
      const entries = await trail();
      assert.equal(entries.length, before + 1);
      const { operation, target, reason, result, actor_email, details } = entries.at(-1);
      assert.deepEqual(
        { operation, target, reason, result, actor_email },
        {
          operation: 'operatorReleaseCluster',
          target: 'nonsense',
          reason: 'I want',
          result: 'refused: forbidden',
          actor_email: 'bob@physics.example',
        },
      );
      assert.equal(details, refused.body.message);
      await service.write('/me/ssh-keys', { as: 'ada', body: { public_key: 'nonsense' } });
      assert.equal((await trail()).length, before + 1);
    },
  );

  await t.test('one person cannot fill it with refusals', async () => {
    const before = (await trail()).length;
    for (let i = 0; i < 80; i++) await service.write('/operator/clusters/x/release', { as: 'eve' });
    const added = (await trail()).slice(before);
    assert.equal(added.length, 60);
    assert.match(added.at(-1).details, /not recorded/);
    service.advance(60_000);
    await service.write('/operator/clusters/x/release', { as: 'eve' });
    assert.equal((await trail()).length, before + 61);
  });

  await t.test('filtered by person (who did it, or to whom), by cluster, by time; paged by seq', async () => {
    const { body } = await service.business(`/organizations/${org}/members`, { as: 'ada' });
    const bob = body.members.find((one: Reply['body']) => one.email.startsWith('bob')).user_id;
    await service.write(`/organizations/${org}/members/${bob}/permissions`, {
      as: 'ada',
      method: 'PUT',
      body: { permissions: ['clusters.read'] },
    });
    const ofBob = await trail(`&person=${bob}`);
    assert.deepEqual(
      ofBob.map((entry) => [entry.operation, entry.actor_email]),
      [
        ['operatorReleaseCluster', 'bob@physics.example'],
        ['setMemberPermissions', 'ada@physics.example'],
      ],
    );
    assert.equal(ofBob[1].details, 'permissions clusters.read, clusters.ssh → clusters.read');
    await service.write(`/operator/clusters/${alpha.toUpperCase()}/release`, { as: 'bob' });
    assert.deepEqual(
      (await trail(`&cluster=${alpha}`)).map((entry) => entry.result),
      ['refused: forbidden'],
    );
    const at = encodeURIComponent(ofBob[1].at);
    assert.deepEqual((await trail(`&from=${at}`))[0].seq, ofBob[1].seq);
    assert.ok((await trail(`&to=${at}`)).every((entry) => entry.seq < ofBob[1].seq));
    const all = await trail();
    const page = await service.business(`/operator/audit?limit=2&after=${all[2].seq}`, { as: 'otto' });
    assert.deepEqual(page.body.entries, all.slice(3, 5));
    assert.equal((await service.business('/operator/audit?limit=1001', { as: 'otto' })).status, 422);
    assert.equal((await service.business('/operator/audit?from=yesterday', { as: 'otto' })).status, 422);
  });

  await t.test('it needs staff.audit, which staff.operate includes', async () => {
    assert.equal((await service.business('/operator/audit', { as: 'root' })).status, 200);
    assert.equal((await service.business('/operator/audit', { as: 'ada' })).status, 403);
  });

  await t.test('every entry is chained to the one before, from the first', async () => {
    const entries = (await trail()).map(record);
    assert.equal(
      findBreak(
        { seq: 0, hash: '' },
        entries.map(({ ...entry }) => entry),
      ),
      undefined,
    );
  });

  await t.test(
    'the database itself refuses to change or drop an entry; what gets round that shows',
    async () => {
      const file = new Database(join(service.dataDir, 'data/andromeda.db'));
      assert.throws(
        () => file.exec("update audit_entries set reason = 'other' where seq = 2"),
        /append-only/,
      );
      assert.throws(() => file.exec('delete from audit_entries where seq = 2'), /append-only/);
      file.exec('drop trigger audit_entries_stay');
      file.exec("update audit_entries set reason = 'other' where seq = 2");
      file.close();
      assert.equal(findBreak({ seq: 0, hash: '' }, (await trail()).map(record))?.seq, 2);
    },
  );
});

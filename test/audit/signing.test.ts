import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { headText, isSignedHead, makeAuditKey, parseAuditKey } from '../../src/domain/audit/audit.ts';
import { withNext } from '../../src/domain/key-rotation.ts';
import { addHead, findLastSeq, listHeads } from '../../src/store/audit/audit.ts';
import { listKeptFiles } from '../../src/store/data-dir/backup-file.ts';
import { readKeyFiles, writeKeyFiles } from '../../src/store/data-dir/key-files.ts';
import { insertRow } from '../../src/store/engine/rows.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { openTrail, rewrite, startAudit } from './support.ts';

const config = { signMs: 3_600_000, file: undefined, group: undefined };
const keyFile = 'keys/audit_ed25519.pem';

test('the key of an installation is made once, for its owner only, and is a part of its backups', async () => {
  await using trail = await openTrail();
  const deps = { ...trail, now: Date.now };
  const [first] = startAudit(config, deps).publicKeys();
  assert.deepEqual(startAudit(config, deps).publicKeys(), [first]);
  assert.equal(statSync(join(trail.dataDir, keyFile)).mode & 0o777, 0o600);
  assert.ok(listKeptFiles(trail.dataDir).includes(keyFile));
});

test('heads are signed at intervals while entries come, on demand, and at the end', async () => {
  await using trail = await openTrail();
  const audit = startAudit({ ...config, signMs: 20 }, { ...trail, now: Date.now });
  const heads = () => listHeads(trail.store.read, { after: 0, limit: 1000 });
  await trail.add('a');
  const first = await findLastSeq(trail.store.read);
  await eventually(heads, (list) => list.at(-1)?.seq === first);
  await trail.add('b');
  const head = await audit.sign();
  assert.equal(head?.seq, first + 1);
  assert.ok(head && isSignedHead(head) && head.key === audit.publicKeys()[0]);
  assert.deepEqual(await audit.sign(), head, 'what is signed is not signed again');
  assert.ok(!isSignedHead({ ...head, seq: head.seq + 1 }), 'a signature is of one head only');
  assert.equal(headText(head), `andromeda audit head\n${head.seq}\n${head.hash}\n${head.at}\n`);
  await trail.add('c');
  await audit.stop();
  assert.equal((await heads()).at(-1)?.seq, first + 2);
});

test('a trail that was computed again is not signed, neither by the same process nor by the next one', async () => {
  await using trail = await openTrail();
  const deps = { ...trail, now: Date.now };
  await trail.add('a', 'b', 'c');
  const audit = startAudit(config, deps);
  const before = await audit.sign();
  await rewrite(trail.dataDir, (before?.seq ?? 0) - 1);
  await trail.add('d');
  await assert.rejects(audit.sign(), /was rewritten or cut: entry \d+ is not the one that was signed/);
  await audit.stop();
  const next = startAudit(config, deps);
  await assert.rejects(next.sign(), /was rewritten or cut/);
  await next.stop();
  assert.ok(trail.events().includes('audit.sign.failed'));
  assert.deepEqual((await listHeads(trail.store.read, { after: 0, limit: 10 })).at(-1), before);
});

test('a thousand heads are kept', async () => {
  await using trail = await openTrail();
  await trail.store.write(async ({ db }) => {
    for (let seq = 1; seq <= 1000; seq++)
      await insertRow(db, 'audit_heads', { seq, hash: 'h', at: 't', key: 'k', signature: 's' });
  });
  const another = { seq: 1001, hash: 'h', at: 't', key: 'k', signature: 's' };
  await addHead(trail.store, another);
  const heads = await listHeads(trail.store.read, { after: 0, limit: 2000 });
  assert.deepEqual([heads.length, heads[0]?.seq, heads.at(-1)], [1000, 2, another]);
});

test('who may read the trail sees the key and the heads, and has the present one signed', async () => {
  await using service = await startTestApp({
    lab: { ...physics, users: [{ email: 'otto@physics.example', staff: ['staff.audit'] }] },
  });
  const head = await service.business('/operator/audit/head', { as: 'otto' });
  assert.equal(head.status, 200);
  assert.ok(isSignedHead(head.body));
  const { body } = await service.business('/operator/audit/heads', { as: 'otto' });
  assert.equal(body.key, head.body.key);
  assert.deepEqual(body.heads.at(-1), head.body);
  for (const path of ['/operator/audit/head', '/operator/audit/heads'])
    assert.equal((await service.business(path, { as: 'ada' })).status, 403);
  await rewrite(`${service.dataDir}/data`, 1);
  assert.equal((await service.business('/operator/audit/head', { as: 'otto' })).status, 409);
});

test('a key that takes the place of another goes on with what that one signed, which counts on', async () => {
  await using trail = await openTrail();
  const { store, dataDir, add } = trail;
  await add('a', 'b');
  const before = await startAudit(config, { ...trail, now: Date.now }).sign();
  const [former = ''] = startAudit(config, { ...trail, now: Date.now }).publicKeys();
  const text = readKeyFiles(dataDir, 'audit')?.key ?? '';
  const next = makeAuditKey({ text, title: 'the key', stolen: false });
  const put = (days: number) => {
    const start = Date.now() - days * 86_400_000;
    writeKeyFiles(dataDir, 'audit', withNext({ key: text }, next, 30, start));
    return startAudit(config, { ...trail, now: Date.now });
  };
  const { publicKey } = parseAuditKey(next, 'it');
  assert.deepEqual(put(1).publicKeys(), [former, publicKey]);
  await add('c');
  assert.equal((await put(1).sign())?.key, former);
  for (const days of [16, 31]) {
    await add('d');
    const audit = put(days);
    assert.deepEqual(audit.publicKeys(), [publicKey, former], 'also when the key itself is gone');
    const head = await audit.sign();
    assert.equal(head?.key, publicKey);
    assert.ok(head && isSignedHead(head));
  }
  // What the former signed is not forgotten: a trail that was rewritten since is not signed anew.
  await rewrite(dataDir, before?.seq ?? 0);
  await store.write(async ({ db }) => {
    await db.deleteFrom('audit_heads').where('key', '=', publicKey).execute();
  });
  await assert.rejects(put(31).sign(), /The audit trail was rewritten or cut: entry/);
});

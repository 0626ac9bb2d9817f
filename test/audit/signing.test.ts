import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { headText, isSignedHead } from '../../src/domain/audit/head.ts';
import { startAudit } from '../../src/service/audit/index.ts';
import { addHead, findLastSeq, listHeads } from '../../src/store/audit/audit.ts';
import { listKeptFiles } from '../../src/store/data-dir/backup-file.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { openTrail, rewrite } from './support.ts';

const config = { signMs: 3_600_000, file: undefined, group: undefined };
const keyFile = 'keys/audit_ed25519.pem';

test('the key of an installation is made once, for its owner only, and is a part of its backups', async () => {
  await using trail = await openTrail();
  const deps = { ...trail, now: Date.now };
  const first = startAudit(config, deps);
  await first.stop();
  const second = startAudit(config, deps);
  await second.stop();
  assert.equal(second.publicKey, first.publicKey);
  assert.equal(statSync(join(trail.dataDir, keyFile)).mode & 0o777, 0o600);
  assert.ok(listKeptFiles(trail.dataDir).includes(keyFile));
  const secret = readFileSync(join(trail.dataDir, keyFile), 'utf8');
  writeFileSync(join(trail.dataDir, keyFile), secret.slice(0, 60));
  assert.throws(() => startAudit(config, deps), /holds no Ed25519 key/);
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
  assert.ok(head && isSignedHead(head) && head.key === audit.publicKey);
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
      await db
        .insertInto('audit_heads')
        .values({ seq, hash: 'h', at: 't', key: 'k', signature: 's' })
        .execute();
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

/** `andromeda admin audit accept-break`: a trail that did break can be gone on from, and says so for good. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { type AuditRecord, findBreak, parseAuditKey } from '../../src/domain/audit/audit.ts';
import { redactEntries } from '../../src/store/audit/retention.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { addBroken } from '../audit/support.ts';
import { createMachine, sessionAt } from '../cli/harness.ts';
import { physics, startTestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { runProgram } from '../support/program.ts';
import { isOnFile } from '../support/store.ts';

test('a break is accepted on the host only, one by one, and every check says so from then on', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { store } = service.app;
  const machine = await createMachine(t);
  const accessToken = await service.issuer.token('root');
  await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);
  const verify = (...flags: string[]) => machine.run(['admin', 'audit', 'verify', ...flags]);
  const config = join(service.dataDir, 'andromeda.yaml');
  const accept = (seq: number) => runProgram('admin', 'audit', 'accept-break', `${seq}`, '--config', config);
  const add = () => service.write('/operator/clusters/none/release', { as: 'bob' });

  await add();
  const first = await addBroken(store, 1, `${'x'.repeat(79)}\ud83d`);
  await add();
  const second = await addBroken(store, 3, 'behind entries that are missing');
  await add();
  assert.match(
    (await verify()).stderr,
    new RegExp(`Entry ${first} is the first .*accept-break ${first}`, 's'),
  );
  assert.equal((await service.business('/operator/audit/head', { as: 'root' })).status, 409);

  for (const seq of [first - 1, first + 1]) {
    const fits = await accept(seq);
    assert.deepEqual([fits.status, /follows from the one before/.test(fits.err)], [1, true], fits.err);
  }
  assert.match((await accept(second - 1)).err, /has no entry/);
  assert.match((await accept(0)).err, /is no number of an entry/);

  const accepted = await accept(first);
  assert.equal(accepted.status, 0, accepted.err);
  assert.match((await verify()).stderr, new RegExp(`Entry ${second} is the first`));
  assert.equal((await accept(second)).status, 0);
  assert.match((await accept(second)).err, /follows from the one before/);

  assert.deepEqual(JSON.parse((await verify('-o', 'json')).stdout).accepted, [first, second]);
  fails(await verify(), 0, new RegExp(`broke at entries ${first}, ${second}, which was accepted`));
  // `doctor` reads the trail of a file only.
  const { out, err } = await runProgram('doctor', '--config', config);
  if (isOnFile) assert.match(`${out}${err}`, /audit trail +All \d+ entries \(accepted breaks: 2\) fit/);
  assert.equal((await service.business('/operator/audit/head', { as: 'root' })).status, 200);
  const { entries } = (await service.business('/operator/audit?limit=1000', { as: 'root' })).body;
  const told = entries.filter((one: AuditRecord) => one.operation === 'acceptAuditBreak');
  assert.deepEqual(
    told.map((one: AuditRecord) => [one.target, one.actor_user_id]),
    [first, second].map((seq) => [`${seq}`, systemUserId]),
  );

  // What is replaced in it later, as when a person is erased, does not make it one that always fitted.
  const key = parseAuditKey(
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    'key',
  );
  await redactEntries(store, {
    after: second - 1,
    until: second,
    redact: ({ target, source_address, details }) => ({
      target,
      reason: '[erased]',
      source_address,
      details,
    }),
    sign: (previous, entry) => key.signRedaction(previous, entry, '2026-01-01T00:00:00.000Z'),
  });
  const later = (await service.business('/operator/audit?limit=1000', { as: 'root' })).body.entries;
  const one = later.find(({ seq }: AuditRecord) => seq === second);
  assert.deepEqual([one.reason, one.redaction.accepted], ['[erased]', true]);
  const chained = later.map((entry: object) => ({
    command_id: null,
    organization_id: null,
    cluster_id: null,
    subject_user_id: null,
    ...entry,
  }));
  assert.equal(findBreak({ seq: 0, hash: '' }, chained), undefined);
  // Neither does somebody with the database, who cannot sign: not as a redaction, nor by leaving out an entry before it.
  const { accepted: _, ...redaction } = one.redaction;
  const without = chained.map((entry: AuditRecord) =>
    entry.seq === second ? { ...entry, redaction } : entry,
  );
  assert.equal(findBreak({ seq: 0, hash: '' }, without)?.seq, second);
  const shorter = chained.filter(({ seq }: AuditRecord) => seq !== first + 1);
  assert.ok(findBreak({ seq: 0, hash: '' }, shorter));
});

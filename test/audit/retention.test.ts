/** What is kept for a while only, and that the trail can be checked before, during and after. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { findBreak, makeAuditKey, parseAuditKey } from '../../src/domain/audit/audit.ts';
import { newId } from '../../src/domain/id.ts';
import { createLogger } from '../../src/lib/log.ts';
import {
  applyRetention,
  type RetentionDeps,
  type RetentionSettings,
} from '../../src/service/audit/retention.ts';
import { createSigner } from '../../src/service/audit/signer.ts';
import { appendAuditEntry, listAuditEntries, setPosition } from '../../src/store/audit/audit.ts';
import { setCheckpoint } from '../../src/store/audit/retention.ts';
import { inspectDatabase } from '../../src/store/data-dir/inspect.ts';
import { insertRow, listRows } from '../../src/store/engine/rows.ts';
import { toTime } from '../../src/store/engine/time.ts';
import { createAccessRequest } from '../../src/store/organizations/access-requests.ts';
import { createMachine, sessionAt } from '../cli/harness.ts';
import { physics, startTestApp } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { auditKeys } from '../support/service-keys.ts';
import { openTestStore, requireRow, testEntry, userId } from '../support/store.ts';

const day = 86_400_000;

/** A trail that began forty days ago; what is added to it now is new. */
async function openOldTrail(entries: number) {
  const clock = { now: Date.parse('2026-01-01T00:00:00Z') };
  const opened = await openTestStore(physics, () => clock.now);
  const { store, dataDir } = opened;
  const actor = await userId(store, 'ada@physics.example');
  const add = (operation: string, count: number) =>
    store.write(async (tx) => {
      for (let i = 0; i < count; i++)
        await appendAuditEntry(tx, {
          ...{ ...testEntry(`t${i}`), actorUserId: actor, operation, reason: 'because of Ada' },
          details: 'command: "rm secrets"',
        });
    });
  await add('test', entries);
  await add('ssh.session.closed', 60);
  clock.now += 40 * day;
  await add('ssh.session.closed', 3);
  const keys = auditKeys(dataDir);
  const key = () => keys().used;
  const signer = createSigner(store, keys, () => clock.now);
  const deps: RetentionDeps = { store, key, signer, file: undefined, log: createLogger('silent') };
  const file = join(dataDir, 'andromeda.db');
  return {
    ...deps,
    deps,
    keys,
    clock,
    dataDir,
    retain: (settings: RetentionSettings, from = deps) =>
      applyRetention(from, settings, new AbortController().signal),
    seqs: async () =>
      (await listAuditEntries(store.read, {}, { after: 0, limit: 9999 })).map(({ seq }) => seq),
    async findings() {
      using inspection = inspectDatabase(file);
      return await inspection.auditTrail();
    },
    /** What somebody can do who has the database. */
    tamper(...statements: string[]) {
      const database = new Database(file);
      for (const trigger of ['stay', 'remain'])
        database.exec(`drop trigger if exists audit_entries_${trigger}`);
      for (const statement of statements) database.exec(statement);
      database.close();
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('old entries are deleted up to a signed checkpoint, in small parts; the rest fits still', async () => {
  await using trail = await openOldTrail(400);
  const before = await trail.seqs();
  const last = before.at(-1) ?? 0;
  let turns = 0;
  const counter = setInterval(() => void turns++, 0);
  await trail.retain({ audit: 30 });
  clearInterval(counter);
  assert.ok(turns >= 8, `others had ${turns} turns`);
  // Those of the last days, and what tells of the deletion.
  const seqs = await trail.seqs();
  assert.deepEqual(seqs, [last - 2, last - 1, last, last + 1]);
  const { first, entries, fault } = await trail.findings();
  assert.deepEqual([first, entries, fault], [last - 2, last + 1, undefined]);

  await trail.retain({ audit: 30 });
  assert.deepEqual(await trail.seqs(), seqs, 'nothing more is old');
  const database = new Database(join(trail.dataDir, 'andromeda.db'));
  assert.throws(() => database.exec(`delete from audit_entries where seq = ${last}`), /append-only/);
  assert.throws(() => database.exec("update audit_entries set reason = ''"), /append-only/);
  database.close();
  assert.ok((await trail.signer.sign())?.seq, 'and is signed again');
});

test('a clock that is far ahead at the start deletes nothing for a day, also behind what it has written', async () => {
  await using trail = await openOldTrail(5);
  const before = await trail.seqs();
  const isNew = { ...trail.deps, isNew: () => true };
  // What was written last has the time of the wrong clock.
  await trail.retain({ audit: 1, sessions: 1, commands: 7 }, isNew);
  trail.clock.now += 3_600_000;
  await trail.retain({ audit: 1 }, isNew);
  assert.deepEqual(await trail.seqs(), before);
  await trail.retain({ audit: 1 });
  assert.ok((await trail.seqs()).length < before.length);
});

test('a trail that was cut is not accepted: neither behind its checkpoint, nor with a head in its place', async () => {
  await using trail = await openOldTrail(10);
  const head = await trail.signer.sign();
  await trail.retain({ audit: 30 });
  const { first } = await trail.findings();
  trail.tamper(`delete from audit_entries where seq = ${first}`);
  assert.match((await trail.findings()).fault ?? '', new RegExp(`^Entry ${first + 1} does not fit`));
  trail.tamper(
    'delete from audit_checkpoints',
    `delete from audit_entries where seq <= ${head?.seq}`,
    `insert into audit_checkpoints select * from audit_heads where seq = ${head?.seq}`,
  );
  assert.match((await trail.findings()).fault ?? '', /The signature of the checkpoint of entry \d+ is wrong/);
  trail.tamper('delete from audit_checkpoints');
  assert.match((await trail.findings()).fault ?? '', /does not fit/);
});

test('a crash behind the checkpoint leaves a trail that fits, and the next run goes on', async () => {
  await using trail = await openOldTrail(120);
  const [entry] = await listAuditEntries(trail.store.read, {}, { after: 99, limit: 1 });
  assert.ok(entry);
  const checkpoint = trail.key().signCheckpoint({ seq: entry.seq, hash: entry.hash, at: entry.at });
  await setCheckpoint(trail.store, checkpoint, { ...testEntry('1-100'), operation: 'deleteAuditEntries' });
  assert.equal((await trail.seqs())[0], 1);
  assert.deepEqual([(await trail.findings()).first, (await trail.findings()).fault], [101, undefined]);
  await trail.retain({ audit: 36_000 });
  assert.equal((await trail.seqs())[0], 101);
  assert.equal((await trail.findings()).fault, undefined);
});

test('what the copy does not have yet stays; a trail that was changed is not cleared away', async () => {
  await using trail = await openOldTrail(10);
  const deps = { ...trail.deps, file: '/somewhere' };
  const [first] = await trail.seqs();
  await trail.retain({ audit: 30 }, deps);
  assert.equal((await trail.seqs())[0], first);
  await setPosition(trail.store, '/somewhere', { entry: 6, head: 0 });
  await trail.retain({ audit: 30 }, deps);
  assert.equal((await trail.seqs())[0], 6);
  trail.tamper("update audit_entries set reason = 'forged' where seq = 9");
  await assert.rejects(trail.retain({ audit: 30 }), /Entry 9 of the audit trail does not fit/);
  await assert.rejects(trail.retain({ sessions: 30, audit: 30 }), /does not fit/);
});

test('of old sessions only who, when and where stays; any other change of them is found', async () => {
  await using trail = await openOldTrail(70);
  await trail.retain({ sessions: 30 });
  const entries = await listAuditEntries(trail.store.read, {}, { after: 0, limit: 999 });
  const sessions = entries.filter(({ operation }) => operation.startsWith('ssh.'));
  assert.equal(sessions.filter(({ details }) => details === '').length, 60);
  assert.equal(sessions.filter(({ redaction }) => redaction !== null).length, 60);
  assert.equal(entries.filter(({ reason }) => reason === '').length, 60, 'and nothing else');
  const findings = await trail.findings();
  assert.equal(findings.fault, undefined);
  assert.deepEqual(findings.keys, [trail.key().publicKey]);
  const [one] = sessions;
  assert.ok(one);
  const [previous] = await listAuditEntries(trail.store.read, {}, { after: one.seq - 2, limit: 1 });
  assert.ok(previous);
  assert.equal(
    findBreak(previous, [one], () => false),
    one,
    'by a key that nobody trusts',
  );

  const forgeries: [string, string][] = [
    [`update audit_entries set details = 'x' where seq = ${one.seq}`, "details = ''"],
    [
      `update audit_entries set redaction = null where seq = ${one.seq}`,
      `redaction = '${JSON.stringify(one.redaction)}'`,
    ],
    // A change of the entry before, with its hash computed again.
    [`update audit_entries set hash = 'sha256:00' where seq = ${one.seq - 1}`, ''],
  ];
  for (const [forgery, mended] of forgeries) {
    trail.tamper(forgery);
    assert.match((await trail.findings()).fault ?? '', /does not fit/, forgery);
    if (mended) trail.tamper(`update audit_entries set ${mended} where seq = ${one.seq}`);
  }
});

test('stored results of commands are forgotten by their age', async () => {
  await using trail = await openOldTrail(0);
  const { store, clock } = trail;
  const actor = await userId(store, 'ada@physics.example');
  await store.write(async ({ db }) => {
    for (let i = 0; i < 130; i++) {
      const at = clock.now - (i < 120 ? 20 : 1) * day;
      const row = { id: newId('command', at), actor_user_id: actor, idempotency_key: `key ${i}` };
      const fields = { operation: 'x', request_hash: 'x', result: '{}', created_at: toTime(at) };
      await insertRow(db, 'commands', { ...row, ...fields });
    }
  });
  const { id: organizationId } = await requireRow(store.read, 'organizations', {});
  for (const days of [20, 10, 1]) {
    const asked = { organizationId, userId: actor, clusterId: null, permissions: ['clusters.ssh'], hours: 1 };
    const now = clock.now - days * day;
    await store.write((tx) => createAccessRequest({ ...tx, now }, { ...asked, reason: `${days}` }));
  }
  await trail.retain({ commands: 7 });
  assert.equal((await listRows(store.read, 'commands', {})).length, 10);
  const asked = fieldsOf(await listRows(store.read, 'access_requests', {}), 'reason');
  assert.deepEqual(asked.sort(), ['1', '10'], 'what may be open stays');
});

test('audit verify accepts a trail that begins at a checkpoint, and says so', async (t) => {
  await using service = await startTestApp();
  const dataDir = join(service.dataDir, 'data');
  const { store } = service.app;
  for (let i = 0; i < 5; i++)
    await service.write('/operator/people', { as: 'root', body: { email: `p${i}@x.example` } });
  service.advance(40 * day);
  await service.write('/operator/people', { as: 'root', body: { email: 'new@x.example' } });
  const keys = auditKeys(dataDir);
  const key = () => keys().used;
  const signer = createSigner(store, keys, Date.now);
  const deps = { store, key, signer, file: undefined, log: createLogger('silent') };
  await applyRetention(deps, { audit: 30 }, new AbortController().signal);
  const machine = await createMachine(t);
  const accessToken = await service.issuer.token('root');
  await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);
  const { status, stdout, stderr } = await machine.run(['admin', 'audit', 'verify']);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^entries \d+\nhead \d+:sha256:/);
  assert.match(stderr, /Entries up to \d+ were deleted at 20/);
  const other = parseAuditKey(makeAuditKey(), 'it').publicKey;
  const distrusted = await machine.run(['admin', 'audit', 'verify', '--key', other]);
  assert.match(distrusted.stderr, /is signed with another key/);
});

test('a server goes on signing when another deleted what it signed last, and not when another program did', async () => {
  await using trail = await openOldTrail(20);
  const other = createSigner(trail.store, trail.keys, () => trail.clock.now);
  const before = await other.sign();
  // By then all of it is old.
  trail.clock.now += 40 * day;
  await trail.store.write((tx) => appendAuditEntry(tx, testEntry('late')));
  await trail.retain({ audit: 30 });
  const [first = 0] = await trail.seqs();
  assert.ok(before && first > before.seq, 'the entry of its last head is gone');
  const head = await other.sign();
  assert.equal(head?.seq, (await trail.seqs()).at(-1));
  trail.tamper(`delete from audit_entries where seq <= ${head?.seq}`);
  // What is read in one go is of one moment.
  await new Promise((done) => setImmediate(done));
  await assert.rejects(other.sign(), /was rewritten or cut/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AuditRecord,
  auditHash,
  findBreak,
  makeAuditKey,
  parseAuditKey,
  trustedKeys,
} from '../../src/domain/audit/audit.ts';

function chain(length: number): (AuditRecord & { hash: string })[] {
  const entries: (AuditRecord & { hash: string })[] = [];
  for (let seq = 1; seq <= length; seq++) {
    const record: AuditRecord = {
      seq,
      at: `2026-01-01T00:00:0${seq}.000Z`,
      actor_user_id: 'user_1',
      command_id: null,
      operation: 'test',
      target: `t${seq}`,
      organization_id: null,
      cluster_id: null,
      subject_user_id: null,
      reason: 'r',
      source_address: '127.0.0.1',
      result: 'done',
      details: '',
    };
    entries.push({ ...record, hash: auditHash(entries.at(-1)?.hash ?? '', record) });
  }
  return entries;
}

const start = { seq: 0, hash: '' };

test('an untouched trail holds, from its start and from any entry on', () => {
  const entries = chain(5);
  assert.equal(findBreak(start, entries), undefined);
  assert.equal(findBreak(entries[2] ?? start, entries.slice(3)), undefined);
});

test('each field is covered: a change of any shows at its entry', () => {
  for (const field of Object.keys(chain(1)[0] ?? {}).filter((name) => name !== 'hash' && name !== 'seq')) {
    const entries = chain(4).map((entry) => (entry.seq === 2 ? { ...entry, [field]: 'changed' } : entry));
    assert.equal(findBreak(start, entries)?.seq, 2, field);
  }
});

test('an entry taken out, put in, or moved shows', () => {
  const entries = chain(4);
  assert.equal(findBreak(start, entries.toSpliced(1, 1))?.seq, 3);
  assert.equal(findBreak(start, entries.toSpliced(1, 0, entries[0] as never))?.seq, 1);
  assert.equal(findBreak(start, entries.toReversed())?.seq, 4);
});

test('an entry whose hash was made to fit again shows at the next one', () => {
  const entries = chain(3);
  const [first, second] = entries as [AuditRecord & { hash: string }, AuditRecord & { hash: string }];
  second.reason = 'another';
  second.hash = auditHash(first.hash, second);
  assert.equal(findBreak(start, entries)?.seq, 3);
});

test('fields cannot be shifted into each other', () => {
  const [record] = chain(1) as unknown as [AuditRecord];
  assert.notEqual(
    auditHash('', { ...record, reason: 'ab', target: 'c' }),
    auditHash('', { ...record, reason: 'b', target: 'ca' }),
  );
});

test('the hash that is kept of an identity is the same with one key, and cannot be made without it', () => {
  const text = makeAuditKey();
  const [key, again, other] = [text, text, makeAuditKey()].map((one) => parseAuditKey(one, 'the key'));
  const mark = key?.markIdentity('https://issuer.example', 'dan');
  assert.equal(again?.markIdentity('https://issuer.example', 'dan'), mark);
  assert.notEqual(other?.markIdentity('https://issuer.example', 'dan'), mark);
  assert.notEqual(key?.markIdentity('https://issuer.example', 'dana'), mark);
  assert.notEqual(key?.markIdentity('https://issuer.exampled', 'an'), mark);
});

test('a key in the place of another makes the same hashes, and its signatures count besides', () => {
  const first = makeAuditKey();
  const second = makeAuditKey({ text: first, title: 'the key', stolen: false });
  const third = makeAuditKey({ text: second, title: 'the key', stolen: false });
  const [one, two, three] = [first, second, third].map((text) => parseAuditKey(text, 'the key'));
  assert.ok(one && two && three);
  assert.notEqual(one.publicKey, two.publicKey);
  const marks = [one, two, three].map((key) => key.markIdentity('https://issuer.example', 'dan'));
  assert.equal(new Set(marks).size, 1);
  assert.deepEqual(three.formerKeys, [two.publicKey, one.publicKey]);
  const held = { used: two, next: three };
  assert.deepEqual(trustedKeys(held), [two.publicKey, three.publicKey, one.publicKey]);
  const stolen = parseAuditKey(makeAuditKey({ text: second, title: 'the key', stolen: true }), 'the key');
  assert.deepEqual(stolen.formerKeys, [one.publicKey]);
  assert.throws(
    () => makeAuditKey({ text: 'rubbish', title: '/data/key', stolen: false }),
    /The key in \/data\/key cannot be used/,
  );
});

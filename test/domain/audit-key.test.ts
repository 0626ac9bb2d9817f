import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeAuditKey, parseAuditKey, trustedKeys } from '../../src/domain/audit/audit.ts';

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

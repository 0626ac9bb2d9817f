import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeAuditKey, parseAuditKey } from '../../src/domain/audit/key.ts';

test('the hash that is kept of an identity is the same with one key, and cannot be made without it', () => {
  const text = makeAuditKey();
  const [key, again, other] = [text, text, makeAuditKey()].map((one) => parseAuditKey(one, 'the key'));
  const mark = key?.markIdentity('https://issuer.example', 'dan');
  assert.equal(again?.markIdentity('https://issuer.example', 'dan'), mark);
  assert.notEqual(other?.markIdentity('https://issuer.example', 'dan'), mark);
  assert.notEqual(key?.markIdentity('https://issuer.example', 'dana'), mark);
  assert.notEqual(key?.markIdentity('https://issuer.exampled', 'an'), mark);
});

/** Texts that a database does not give back as they were hashed, in every field of the audit trail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadDocument, operationsOf } from '../../../src/api/http/document.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import { appendAuditEntry, listAuditEntries } from '../../../src/store/audit/audit.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { physics, startTestApp } from '../../support/app.ts';
import { openTestStore } from '../../support/store.ts';
import { type Given, rows } from '../writes-table.ts';

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

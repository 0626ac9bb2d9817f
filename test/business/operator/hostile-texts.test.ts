/** Texts that a database does not give back as they were hashed, in every field of the audit trail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpenAPIV3_1 } from 'openapi-types';
import { type Document, loadDocument, operationsOf, resolve } from '../../../src/api/http/document.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import { appendAuditEntry, listAuditEntries } from '../../../src/store/audit/audit.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { physics, startTestApp } from '../../support/app.ts';
import { openTestStore } from '../../support/store.ts';

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
  await using opened = await openTestStore(physics);
  const { store } = opened;
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

test('no request to the APIs, whatever its texts are, breaks the chain of the audit trail', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  let sent = 0;
  for (const api of ['business', 'platform'] as const) {
    const document = loadDocument(api);
    const writes = operationsOf(document).filter(({ method }) => method !== 'get');
    for (const [round, text] of [...acrossCuts, ...longer, '\0', 'x\ufffd'].entries()) {
      service.advance(60_000);
      const segment = encodeURIComponent(text);
      const reason = Buffer.from([...text].slice(-400).join('').trim()).toString('latin1');
      for (const { method, route, source } of writes) {
        const content = (source.requestBody as { content?: Record<string, { schema?: unknown }> } | undefined)
          ?.content;
        const sample = sampleOf(document, content?.['application/json']?.schema);
        const call = {
          as: round % 2 === 0 ? 'ada' : 'root',
          method: method.toUpperCase(),
          headers: { 'Idempotency-Key': `k${++sent}`, ...(text !== '\0' && { 'Audit-Reason': reason }) },
          ...(content && { body: filled(sample, text) }),
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

const mostLevels = 6;

/**
 * The schema's own example, default or first value where it has one, else an empty value of its type. Objects have
 * what is required in them; where nothing is, everything there is, as a skeleton to cut down.
 */
function sampleOf(document: Document, holder: unknown, level = 0): unknown {
  const schema = resolve<OpenAPIV3_1.SchemaObject | undefined>(document, holder);
  if (!schema || level > mostLevels) return null;
  const given = [schema.examples?.[0], schema.example, schema.const, schema.default, schema.enum?.[0]];
  const value = given.find((one) => one !== undefined);
  if (value !== undefined) return value;
  if (schema.oneOf) return sampleOf(document, schema.oneOf[0], level + 1);
  const type = [schema.type].flat().find((one) => one !== 'null');
  switch (type) {
    case 'object': {
      const all = Object.entries(schema.properties ?? {});
      const required = all.filter(([name]) => schema.required?.includes(name));
      const chosen = required.length > 0 ? required : all;
      return Object.fromEntries(
        chosen.map(([name, property]) => [name, sampleOf(document, property, level + 1)]),
      );
    }
    case 'array': {
      const item = sampleOf(document, (schema as { items?: unknown }).items, level + 1);
      return item === '' || item === null ? [] : [item];
    }
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'string':
      return schema.format === 'date-time' ? '2030-01-01T00:00:00Z' : '';
    default:
      return null;
  }
}

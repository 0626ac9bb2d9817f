import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Document, loadDocument } from '../../src/api/http/document.ts';

type Node = Record<string, unknown>;

const schemaKeys = new Set(
  '$ref type format description enum const default examples properties required additionalProperties items oneOf anyOf allOf pattern minLength maxLength minimum maximum minItems maxItems uniqueItems minProperties maxProperties'.split(
    ' ',
  ),
);
const parameterKeys = new Set(
  'name in required description schema allowEmptyValue x-missing x-checked-later $ref'.split(' '),
);

for (const api of ['business', 'platform'] as const) {
  const document = loadDocument(api);

  test(`the ${api} document has no key without a value, as an unquoted comma leaves behind`, () => {
    assert.deepEqual(emptyKeys(document), []);
  });

  test(`the ${api} document’s schemas and parameters have only keys that OpenAPI knows`, () => {
    assert.deepEqual(strayKeys(document), []);
  });
}

test('both would be found', () => {
  const broken = { schemas: { A: { type: 'string', description: 'One', 'or two': null } } };
  const document = { components: broken } as unknown as Document;
  assert.deepEqual(emptyKeys(document), ['components/schemas/A/or two']);
  assert.deepEqual(strayKeys(document), ['components/schemas/A/or two']);
  const nested = { paths: { '/a': { get: { parameters: [{ name: 'a', in: 'query', shema: {} }] } } } };
  assert.deepEqual(strayKeys(nested as unknown as Document), ['paths//a/get/parameters/0/shema']);
});

function emptyKeys(value: unknown, path: string[] = []): string[] {
  if (Array.isArray(value)) {
    // `null` is a value like any other in a list of values.
    return value.flatMap((one, index) => (one === null ? [] : emptyKeys(one, [...path, String(index)])));
  }
  if (value === null) return [path.join('/')];
  return isNode(value)
    ? Object.entries(value).flatMap(([key, inner]) => emptyKeys(inner, [...path, key]))
    : [];
}

/** Looks into whatever there is for what must be a schema or a parameter. */
function strayKeys(value: unknown, path: string[] = []): string[] {
  if (!isNode(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, key];
    if (key === 'schema') return schemaFaults(inner, at);
    if (key === 'schemas' || key === 'parameters') {
      const check = key === 'schemas' ? schemaFaults : parameterFaults;
      return Object.entries(inner as Node).flatMap(([name, one]) => check(one, [...at, name]));
    }
    return strayKeys(inner, at);
  });
}

function parameterFaults(value: unknown, path: string[]): string[] {
  return [...unknownKeys(value, parameterKeys, path), ...strayKeys(value, path)];
}

function schemaFaults(value: unknown, path: string[]): string[] {
  if (!isNode(value)) return [];
  const { properties = {}, items, additionalProperties, oneOf, anyOf, allOf } = value as Record<string, Node>;
  const inner = [
    ...Object.entries(properties),
    ...Object.entries({ items, additionalProperties }),
    ...[oneOf, anyOf, allOf].flatMap((list) => Object.entries(list ?? {})),
  ];
  return [
    ...unknownKeys(value, schemaKeys, path),
    ...inner.flatMap(([key, schema]) => schemaFaults(schema, [...path, key])),
  ];
}

function unknownKeys(value: unknown, known: ReadonlySet<string>, path: string[]): string[] {
  return Object.keys(value as Node)
    .filter((key) => !known.has(key))
    .map((key) => [...path, key].join('/'));
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}

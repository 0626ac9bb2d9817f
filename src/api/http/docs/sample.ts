/** A request body to start from, made of what its schema says. */
import { type Document, resolve } from '../document.ts';
import type { Schema } from './reference.ts';

const mostLevels = 6;

/**
 * The schema's own example, default or first value where it has one, else an empty value of its type. Objects have
 * what is required in them; where nothing is, everything there is, as a skeleton to cut down.
 */
export function sampleOf(document: Document, holder: unknown, level = 0): unknown {
  const schema = resolve<Schema | undefined>(document, holder);
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

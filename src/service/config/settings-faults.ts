/** The faults of settings against their JSON schema: the path, and a sentence that a person can act on. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { type Bounds, durationForm, durationKeyword, type Schema } from './schema.ts';

export interface Fault {
  path: readonly string[];
  sentence: string;
}

/** The faults of a value, none where it fits the schema. Replaces its durations by numbers of their unit. */
export function listFaults(value: unknown, schema: Schema<unknown>): Fault[] {
  const validate = validatorOf(schema);
  if (validate(value)) return [];
  return plainErrors(validate.errors ?? []).map((error) => {
    const path = error.instancePath
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    const unknown = error.params['additionalProperty'] as string | undefined;
    return { path: unknown === undefined ? path : [...path, unknown], sentence: sentenceOf(error, path) };
  });
}

/** Caches validators: compiling one takes 40 ms, and settings are read several times. */
const validators = new WeakMap<object, ValidateFunction>();

function validatorOf(schema: Schema<unknown>): ValidateFunction {
  const known = validators.get(schema);
  if (known) return known;
  const options = { allErrors: true, strictSchema: false, allowUnionTypes: true, verbose: true };
  // A validator runs a few times, so compile time counts: our own schema is not checked, and its code is not optimized.
  const quick = { validateSchema: false, code: { optimize: false } };
  const validate = new Ajv({ ...options, ...quick, keywords: [durationKeyword] }).compile(schema);
  validators.set(schema, validate);
  return validate;
}

/** Where no alternative fits, drops the errors of those that were not meant. */
function plainErrors(errors: ErrorObject[]): ErrorObject[] {
  const plain = errors.filter(({ keyword }) => keyword !== 'anyOf');
  return plain.filter(
    (one) =>
      one.keyword !== 'type' ||
      !one.schemaPath.includes('/anyOf/') ||
      !plain.some((other) => other.keyword !== 'type' && other.instancePath.startsWith(one.instancePath)),
  );
}

/** A value for a message: without user, password and query of a URL. */
export function withoutSecrets(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return JSON.stringify(value.replace(/:\/\/.*@/s, '://…@').replace(/(:\/\/[^?#]*)[?#].*/s, '$1?…'));
}

function sentenceOf(error: ErrorObject, parts: readonly string[]): string {
  const path = parts
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : part))
    .join('.')
    .replaceAll('.[', '[');
  const at = path === '' ? 'the file' : path;
  const { params, keyword } = error;
  if (keyword === 'additionalProperties') {
    const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {});
    const prefix = path === '' ? '' : `${path}.`;
    const given = String(params['additionalProperty']);
    const meant = closestTo(given, known);
    const hint = meant === undefined ? `known here: ${known.join(', ')}.` : `did you mean ${meant}?`;
    return `${prefix}${given} is not a setting; ${hint}`;
  }
  if (keyword === 'required') return `${at} lacks ${params['missingProperty']}.`;
  // Shown instead of the value, which can be a secret: URLs contain passwords and keys.
  const form = (error.parentSchema as { form?: string } | undefined)?.form;
  if (form !== undefined && (keyword === 'pattern' || keyword === 'type')) return `${at} must be ${form}.`;
  if (keyword === 'duration') return `${at} must be ${durationForm(error.schema as Bounds)}.`;
  if (keyword === 'type') return `${at} must be ${article([params['type']].flat().join(' or '))}.`;
  if (keyword === 'enum') return `${at} must be one of ${(params['allowedValues'] as string[]).join(', ')}.`;
  if (keyword === 'pattern') return `${at} is ${withoutSecrets(error.data)}, which is not of the right form.`;
  return `${at} ${error.message}.`;
}

function article(noun: string): string {
  return /^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}

function closestTo(given: string, known: readonly string[]): string | undefined {
  const most = Math.min(3, (given.length - 1) / 2);
  const distances = known.map((name) => ({ name, distance: editDistance(given, name, most) }));
  const [closest] = distances.sort((a, b) => a.distance - b.distance);
  return closest && closest.distance <= most ? closest.name : undefined;
}

/** Levenshtein distance, ignoring case; Infinity where it is more than `most`. */
function editDistance(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return Infinity;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const letter of from.toLowerCase()) {
    const next = [(row[0] ?? 0) + 1];
    for (const [index, other] of [...to.toLowerCase()].entries()) {
      const changed = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Reading a YAML file of settings against a JSON schema, with errors that a person can act on. */
import { readFileSync } from 'node:fs';
import { Ajv, type ErrorObject, type JSONSchemaType, type Schema } from 'ajv';
import { parseDocument, visit } from 'yaml';
import { DomainError } from '../domain/error.ts';
import { hasNul } from '../domain/nul.ts';

/**
 * The file's content, checked. Throws `invalid_request` with one sentence that names the file, the setting and what is
 * wrong there. A schema's `form` says in words what is wanted. Defaults are the caller's business.
 */
export function readSettings<T>(file: string, schema: Schema | JSONSchemaType<T>): T {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a directory' : code;
    throw new DomainError('invalid_request', `Cannot read ${file}: ${reason}.`, { cause: error });
  }
  const document = parseDocument(text, { prettyErrors: true });
  const [problem] = document.errors;
  if (problem) {
    const { line, col } = problem.linePos?.[0] ?? { line: 1, col: 1 };
    const message = problem.message.split(' at line')[0];
    throw new DomainError('invalid_request', `${file}:${line}:${col}: not readable as YAML: ${message}`);
  }
  visit(document, {
    Scalar(_key, { value, range }) {
      if (typeof value !== 'string' || !hasNul(value)) return;
      const line = text.slice(0, range?.[0] ?? 0).split('\n').length;
      throw new DomainError(
        'invalid_request',
        `${file}:${line}: this text has a NUL character (\\0), which no text here can have.`,
      );
    },
  });
  let value: unknown;
  try {
    value = document.toJS() ?? {};
  } catch (error) {
    // Aliases that name each other, or too many of them.
    throw new DomainError('invalid_request', `${file}: not readable as YAML: ${(error as Error).message}.`);
  }
  const validate = new Ajv({
    allErrors: true,
    strictSchema: false,
    allowUnionTypes: true,
    verbose: true,
  }).compile(schema);
  if (!validate(value)) {
    const faults = [...new Set(plainErrors(validate.errors ?? []).map(sentence))];
    throw new DomainError('invalid_request', `${file}: ${faults.slice(0, 5).join(' ')}`);
  }
  return value as T;
}

/** Of alternatives none of which fits, what is wrong with the one that was meant. */
function plainErrors(errors: ErrorObject[]): ErrorObject[] {
  const plain = errors.filter(({ keyword }) => keyword !== 'anyOf');
  return plain.filter(
    (one) =>
      one.keyword !== 'type' ||
      !one.schemaPath.includes('/anyOf/') ||
      !plain.some((other) => other.keyword !== 'type' && other.instancePath.startsWith(one.instancePath)),
  );
}

/** A value as a message may have it: without user, password and query of an address. */
export function withoutSecrets(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return JSON.stringify(value.replace(/:\/\/.*@/s, '://…@').replace(/(:\/\/[^?#]*)[?#].*/s, '$1?…'));
}

function sentence(error: ErrorObject): string {
  const path = error.instancePath
    .slice(1)
    .split('/')
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : part))
    .join('.')
    .replaceAll('.[', '[');
  const at = path === '' ? 'the file' : path;
  const { params, keyword } = error;
  if (keyword === 'additionalProperties') {
    const known = Object.keys((error.parentSchema?.['properties'] as object | undefined) ?? {});
    const prefix = path === '' ? '' : `${path}.`;
    return `${prefix}${params['additionalProperty']} is not a setting; known here: ${known.join(', ')}.`;
  }
  if (keyword === 'required') return `${at} lacks ${params['missingProperty']}.`;
  const secret = /age-(secret-key|plugin-\w+)-|private key/i;
  if (typeof error.data === 'string' && secret.test(error.data))
    return `${at} has a private key; give the public one (age1… or ssh-…), and let nobody read this file who could not read the key.`;
  // In the place of the value, which can be a secret: addresses have passwords and keys in them.
  const form = (error.parentSchema as { form?: string } | undefined)?.form;
  if (form !== undefined && (keyword === 'pattern' || keyword === 'type')) return `${at} must be ${form}.`;
  if (keyword === 'type') return `${at} must be ${article([params['type']].flat().join(' or '))}.`;
  if (keyword === 'enum') return `${at} must be one of ${(params['allowedValues'] as string[]).join(', ')}.`;
  if (keyword === 'pattern') return `${at} is ${withoutSecrets(error.data)}, which is not of the right form.`;
  return `${at} ${error.message}.`;
}

function article(noun: string): string {
  return /^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}

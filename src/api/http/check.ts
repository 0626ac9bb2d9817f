/**
 * Checks requests against the document with Ajv: each operation's validators are compiled at its first call. Why no
 * OpenAPI library, and how replies are checked: docs/decisions/0004.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import express, { type RequestHandler, type Response } from 'express';
import type { OpenAPIV3_1 } from 'openapi-types';
import { DomainError, type ErrorCode, invalidRequest } from '../../domain/error.ts';
import { hasNul } from '../../domain/text.ts';
import { isTime } from '../../domain/units.ts';
import { type Document, resolve } from './document.ts';

interface Inputs {
  path: Record<string, unknown>;
  query: Record<string, unknown>;
  headers: IncomingHttpHeaders;
  body: unknown;
}

/** A request that does not match the document: a status, and the paths of the faults (`/query/limit`). */
class RequestFault extends Error {
  readonly status: number;
  readonly errors: { path: string; message: string }[];

  constructor(status: number, errors: { path: string; message: string }[] = []) {
    super('the request does not match the document');
    this.status = status;
    this.errors = errors;
  }
}

/** Throws `RequestFault`, or the document's own error for a missing parameter or body (`x-missing`). */
export type CheckRequest = (inputs: Inputs) => void;

type Operation = OpenAPIV3_1.OperationObject;
type Schema = Record<string, unknown>;
type Compile = (schema: Schema) => ValidateFunction;

const common: Options = {
  strict: false,
  // The document's schemas are ours, and validated when the types are generated from it.
  validateSchema: false,
  formats: {
    uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i,
    'date-time': isTime,
    uri: (text: string) => URL.canParse(text),
  },
};

/** A cache by operation: all servers of a document in a process share the compiled validators. */
const known = new WeakMap<Operation, CheckRequest>();

export function createChecks(document: Document): (operation: Operation) => CheckRequest {
  const ajv = new Ajv2020({ ...common, useDefaults: true });
  // `$ref`s in a schema are resolved from its root.
  const compile: Compile = (schema) => ajv.compile({ ...schema, components: document.components });

  return (operation) => {
    const check = known.get(operation) ?? checkOf(document, operation, compile);
    known.set(operation, check);
    return check;
  };
}

function checkOf(document: Document, operation: Operation, compile: Compile): CheckRequest {
  const body = resolve<Body | undefined>(document, operation.requestBody);
  let checkParameters: ValidateFunction | undefined;
  let checkBody: ValidateFunction | undefined;
  const ownAnswer = parametersOf(document, operation).filter((one) => one['x-missing']);
  const mayBeEmpty = new Set(
    parametersOf(document, operation).flatMap((one) => (one.allowEmptyValue ? one.name : [])),
  );
  const typed = parametersOf(document, operation)
    .filter((one) => one.in === 'query')
    .map(({ name, schema }) => ({ name, type: resolve<Schema>(document, schema)['type'] }));

  return (inputs) => {
    for (const { name, 'x-missing': code } of ownAnswer) {
      if (!inputs.query[name]) throw missing(`query parameter ${name}`, code);
    }
    const empty = Object.keys(inputs.query)
      .filter((name) => inputs.query[name] === '' && !mayBeEmpty.has(name))
      .map((name) => ({ path: `/query/${name}`, message: 'is empty' }));
    if (empty.length > 0) throw new RequestFault(400, empty);
    for (const { name, type } of typed) {
      if (name in inputs.query) inputs.query[name] = typedValue(inputs.query[name], type);
    }
    checkParameters ??= compile(parametersSchema(document, operation));
    throwFaults(checkParameters, inputs);
    if (!body) return;
    if (!carriesBody(inputs)) {
      if (!body.required) return;
      throw missing('request body', body['x-missing']);
    }
    const type = inputs.headers['content-type'];
    if (!/^application\/json\s*(;|$)/i.test(type ?? '')) throw new RequestFault(415);
    checkBody ??= compile(bodySchema(body));
    throwFaults(checkBody, inputs);
  };
}

/** Converts `true`, `false` and exact integers in plain digits; the schema refuses a value that stays text. */
function typedValue(value: unknown, type: unknown): unknown {
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  if (type !== 'integer' || typeof value !== 'string' || !/^-?\d+$/.test(value)) return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function carriesBody({ headers, body }: Inputs): boolean {
  if (body !== undefined || headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > 0;
}

function schemaOf({ schema, 'x-checked-later': isLater }: Parameter): Schema {
  const whole = (schema ?? {}) as Schema;
  const { pattern: _pattern, format: _format, ...rest } = whole;
  return isLater ? rest : whole;
}

/** Headers are validated in api.ts: their length limits apply to the decoded text, which may not be ASCII. */
function parametersSchema(document: Document, operation: Operation): Schema {
  const all = parametersOf(document, operation);
  const section = (location: string) => {
    const chosen = all.filter((one) => one.in === location);
    return {
      type: 'object',
      properties: Object.fromEntries(chosen.map((one) => [one.name, schemaOf(one)])),
      required: chosen.filter((one) => one.required).map((one) => one.name),
    };
  };
  return {
    type: 'object',
    properties: {
      path: section('path'),
      // Unknown parameters are refused: with a misspelt filter ignored, the reply would contain everything.
      query: { ...section('query'), additionalProperties: false },
    },
  };
}

/**
 * `x-missing`: the error code for a missing query parameter or body, if not the usual one. A missing parameter is
 * reported before faults of others ("Organizations": when it is missing).
 */
type Missing = { 'x-missing'?: ErrorCode };
/** `x-checked-later`: the operation checks the form itself, with the contract's error. */
type Parameter = OpenAPIV3_1.ParameterObject & Missing & { 'x-checked-later'?: true };
type Body = OpenAPIV3_1.RequestBodyObject & Missing;

function parametersOf(document: Document, operation: Operation): Parameter[] {
  return (operation.parameters ?? []).map((one) => resolve<Parameter>(document, one));
}

function missing(what: string, code: ErrorCode = 'invalid_request'): DomainError {
  return new DomainError(code, `The ${what} is missing.`);
}

function bodySchema(body: Body | undefined): Schema {
  const schema = body?.content['application/json']?.schema ?? true;
  return { type: 'object', properties: { body: schema }, required: body?.required ? ['body'] : [] };
}

function throwFaults(check: ValidateFunction, inputs: Inputs): void {
  if (!check(inputs)) throw new RequestFault(400, (check.errors ?? []).map(fault));
}

function fault({ instancePath, keyword, params, message = '' }: ErrorObject) {
  if (keyword === 'required') {
    return { path: `${instancePath}/${params['missingProperty']}`, message: 'is missing' };
  }
  if (keyword === 'additionalProperties') {
    return { path: `${instancePath}/${params['additionalProperty']}`, message: 'is not known' };
  }
  if (keyword === 'enum') return { path: instancePath, message: `must be one of ${params['allowedValues']}` };
  if (keyword === 'format' && params['format'] === 'date-time') {
    return { path: instancePath, message: 'must be a time such as 2030-01-31T00:00:00Z' };
  }
  return { path: instancePath, message };
}

/**
 * Reads a body of at most `limit` bytes into `request.body`; undefined without one. If many small values are worse
 * than a large one, `values` limits their number, which is checked before parsing.
 */
export function createBodyReader(limit: number, values?: number): RequestHandler {
  const read = express.json({
    limit,
    // Accepts JSON that is no object: the document's schema refuses it with a better message.
    strict: false,
    verify(_request, response, bytes, charset) {
      if (values !== undefined && hasMoreValues(bytes, values)) throw tooManyValues(values);
      check(response as Response, bytes, charset);
    },
  });
  return (request, response, next) =>
    read(request, response, (error?: unknown) => {
      // Otherwise an empty body would be read as an empty object.
      if (response.locals.isBodyEmpty === true) request.body = undefined;
      next(error);
    });
}

function check(response: Response, bytes: Buffer, charset: string | null): void {
  response.locals.isBodyEmpty = bytes.length === 0;
  if (charset !== 'utf-8') throw Object.assign(new Error('another charset'), { status: 415 });
  if (!isUtf8(bytes)) throw unreadable();
  // In UTF-8, a lone surrogate can only be written as an escape; in JSON, so can NUL.
  const hasHalf = () => hasText(bytes, (text) => !text.isWellFormed());
  if (['\\ud', '\\uD'].some((begin) => bytes.includes(begin)) && hasHalf()) throw unreadable();
  if (bytes.includes('\\u0000') && hasText(bytes, hasNul))
    throw invalidRequest(
      'The request body has a NUL character (\\u0000), which no text here can have. Take it out.',
    );
}

/** Walks the parsed value: a reviver function would make parsing a large body fifty times slower. */
function hasText(bytes: Buffer, isSuch: (text: string) => boolean): boolean {
  const found: unknown[] = [];
  try {
    found.push(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    throw unreadable();
  }
  for (const value of found) {
    if (typeof value === 'string' && isSuch(value)) return true;
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, inner] of Object.entries(value)) found.push(key, inner);
  }
  return false;
}

const [quote, backslash] = [0x22, 0x5c];
/** The characters outside strings that precede each value in JSON: `,`, `:`, `[` and `{`. */
const beforeValue: ReadonlySet<number> = new Set([0x2c, 0x3a, 0x5b, 0x7b]);

function hasMoreValues(bytes: Buffer, most: number): boolean {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (beforeValue.has(byte)) count += 1;
    if (count > most) return true;
  }
  return false;
}

/** The index of the closing quote of the string that begins at `start`; the end of the text if it is not closed. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(quote, start + 1); end !== -1; end = bytes.indexOf(quote, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === backslash) escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return bytes.length;
}

function tooManyValues(most: number): Error {
  const errors = [{ path: '/body', message: `has more than ${most} names and values` }];
  return Object.assign(new Error('the body has too many values'), { status: 422, errors });
}

function unreadable(): Error {
  return Object.assign(new Error('the body is not text'), { status: 400, type: 'entity.parse.failed' });
}

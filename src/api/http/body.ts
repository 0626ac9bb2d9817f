/** Request bodies: JSON in UTF-8, up to a size, and every string in them text, without NUL. */
import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler, type Response } from 'express';
import { type DomainError, invalidRequest } from '../../domain/error.ts';
import { hasNul } from '../../domain/stored-text.ts';

/**
 * Reads a body of at most `limit` bytes into `request.body`; undefined where there is none. Where many small values are
 * worse than a large one, `values` bounds them, and is held to before the body is parsed.
 */
export function createBodyReader(limit: number, values?: number): RequestHandler {
  const read = express.json({
    limit,
    // A body that is JSON but no object is of the wrong shape, which the document's schema says better.
    strict: false,
    verify(_request, response, bytes, charset) {
      if (values !== undefined && hasMoreValues(bytes, values)) throw tooManyValues(values);
      check(response as Response, bytes, charset);
    },
  });
  return (request, response, next) =>
    read(request, response, (error?: unknown) => {
      // Or nothing at all would be read as an empty object.
      if (response.locals.isBodyEmpty === true) request.body = undefined;
      next(error);
    });
}

function check(response: Response, bytes: Buffer, charset: string | null): void {
  response.locals.isBodyEmpty = bytes.length === 0;
  if (charset !== 'utf-8') throw Object.assign(new Error('another charset'), { status: 415 });
  if (!isUtf8(bytes)) throw unreadable();
  // A half surrogate can only be escaped in UTF-8, and JSON has NUL only as an escape.
  if (['\\ud', '\\uD'].some((begin) => bytes.includes(begin)) && hasText(bytes, isHalf)) throw unreadable();
  if (bytes.includes('\\u0000') && hasText(bytes, hasNul)) throw withNul();
}

/** Whether an escape is one half of a surrogate pair without the other: no character, and no text. */
function isHalf(text: string): boolean {
  return !text.isWellFormed();
}

/** Whether a name or a text in the JSON is such. */
function hasText(bytes: Buffer, isSuch: (text: string) => boolean): boolean {
  let isFound = false;
  try {
    JSON.parse(new TextDecoder().decode(bytes), (key: string, value: unknown) => {
      if (isSuch(key) || (typeof value === 'string' && isSuch(value))) isFound = true;
      return value;
    });
  } catch {
    throw unreadable();
  }
  return isFound;
}

const [quote, backslash] = [0x22, 0x5c];
/** What a JSON text has outside its strings before each value: `,`, `:`, `[` and `{`. */
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

/** Where the string ends that begins here; at the end of the text where it does not. */
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

function withNul(): DomainError {
  return invalidRequest(
    'The request body has a NUL character (\\u0000), which no text here can have. Take it out.',
  );
}

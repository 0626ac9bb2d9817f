/** Request bodies: JSON in UTF-8, up to a size, and every string in them text. */
import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler, type Response } from 'express';

/** Reads a body of at most `limit` bytes into `request.body`; undefined where there is none. */
export function createBodyReader(limit: number): RequestHandler {
  const read = express.json({
    limit,
    // A body that is JSON but no object is of the wrong shape, which the document's schema says better.
    strict: false,
    verify: (_request, response, bytes, charset) => check(response as Response, bytes, charset),
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
  if (!isUtf8(bytes) || hasHalfCharacter(bytes)) throw unreadable();
}

/** Whether an escape is one half of a surrogate pair without the other: no character, and no text. */
function hasHalfCharacter(bytes: Buffer): boolean {
  if (!bytes.includes('\\ud') && !bytes.includes('\\uD')) return false;
  let isFound = false;
  try {
    JSON.parse(new TextDecoder().decode(bytes), (key: string, value: unknown) => {
      if (!key.isWellFormed() || (typeof value === 'string' && !value.isWellFormed())) isFound = true;
      return value;
    });
  } catch {
    // What cannot be read is refused as such.
    return true;
  }
  return isFound;
}

function unreadable(): Error {
  return Object.assign(new Error('the body is not text'), { status: 400, type: 'entity.parse.failed' });
}

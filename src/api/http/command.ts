/** The headers of writes: those of Business must be there (contract, "Limits"), those of Platform may. */
import { isUtf8 } from 'node:buffer';
import { invalidRequest } from '../../domain/error.ts';
import type { CommandHeaders, WriteHeaders } from '../../domain/operation.ts';
import { hasNul } from '../../domain/stored-text.ts';

type ValuesOf = (name: string) => readonly string[];

const mostOfKey = 200;
const mostOfReason = 500;

/**
 * Both headers, checked, from every value that each was sent with. Throws `invalid_request` with a sentence that names
 * the one at fault.
 */
export function commandHeaders(header: ValuesOf): CommandHeaders {
  return {
    idempotencyKey: required(header, 'Idempotency-Key', mostOfKey),
    auditReason: required(header, 'Audit-Reason', mostOfReason),
  };
}

/** The headers of a write that can do without. Throws as above. */
export function writeHeaders(header: ValuesOf): WriteHeaders {
  const given = (name: string) => header(name).length > 0;
  const auditReason = given('Audit-Reason') ? required(header, 'Audit-Reason', mostOfReason) : '';
  // A replacement takes no key (contract, rule 9), as it can be repeated; under a condition it cannot.
  if (!given('If-Match')) return { auditReason };
  return {
    auditReason,
    ifMatch: tagsOf(required(header, 'If-Match', mostOfKey)),
    ...(given('Idempotency-Key') && { idempotencyKey: required(header, 'Idempotency-Key', mostOfKey) }),
  };
}

/** RFC 9110, 13.1.1: `*`, or strong tags. A weak one matches nothing, and is refused as what it is. */
function tagsOf(value: string): string[] {
  if (value === '*') return ['*'];
  const tags = value.split(',').map((tag) => tag.trim());
  if (tags.every((tag) => /^"[\x21\x23-\x7e]*"$/.test(tag))) return tags;
  throw invalidRequest('The header If-Match takes an ETag as it was given, such as "7".');
}

function required(header: ValuesOf, name: string, most: number): string {
  const [text = '', another] = header(name);
  if (another !== undefined) throw invalidRequest(`The header ${name} is there twice.`);
  // Node reads header bytes as Latin-1; most clients that send anything beyond ASCII send UTF-8.
  const bytes = Buffer.from(text, 'latin1');
  const value = (isUtf8(bytes) ? bytes.toString('utf8') : text).trim();
  if (value === '') throw invalidRequest(`The header ${name} is missing.`);
  // Node's parser refuses it today.
  if (hasNul(value)) throw invalidRequest(`The header ${name} has a NUL character.`);
  if ([...value].length > most) {
    throw invalidRequest(`The header ${name} is longer than ${most} characters.`);
  }
  return value;
}

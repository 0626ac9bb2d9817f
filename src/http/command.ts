/** The headers of a Business write (contract, "Limits"). */
import { isUtf8 } from 'node:buffer';
import { DomainError } from '../domain/error.ts';
import type { CommandHeaders } from '../domain/operation.ts';

/**
 * Both headers, checked, from every value that each was sent with. Throws `invalid_request` with a sentence that names
 * the one at fault.
 */
export function commandHeaders(header: (name: string) => readonly string[]): CommandHeaders {
  return {
    idempotencyKey: required(header, 'Idempotency-Key', 200),
    auditReason: required(header, 'Audit-Reason', 500),
  };
}

function required(header: (name: string) => readonly string[], name: string, most: number): string {
  const [text = '', another] = header(name);
  if (another !== undefined) throw new DomainError('invalid_request', `The header ${name} is there twice.`);
  // Node reads header bytes as Latin-1; most clients that send anything beyond ASCII send UTF-8.
  const bytes = Buffer.from(text, 'latin1');
  const value = (isUtf8(bytes) ? bytes.toString('utf8') : text).trim();
  if (value === '') throw new DomainError('invalid_request', `The header ${name} is missing.`);
  if ([...value].length > most) {
    throw new DomainError('invalid_request', `The header ${name} is longer than ${most} characters.`);
  }
  return value;
}

/**
 * Identifiers, made in code. The prefixes and formats are the contract's ("Identifier formats"): a prefix and a
 * ULID (https://github.com/ulid/spec: 48 bits of milliseconds, 80 random bits, Crockford base32) for what Business
 * owns, a UUID for clusters and machines.
 */
import { randomBytes, randomUUID } from 'node:crypto';

export type IdPrefix = 'org' | 'user' | 'ssh_key' | 'org_username' | 'reservation' | 'grant' | 'command';

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A new identifier, such as `ssh_key_01JD…`. `now` is in milliseconds since 1970. */
export function newId(prefix: IdPrefix, now: number): string {
  return `${prefix}_${ulid(now, randomBytes(10))}`;
}

/** Whether `value` is the prefix and a ULID. */
export function isId(prefix: IdPrefix, value: string): boolean {
  return (
    value.startsWith(`${prefix}_`) && /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(value.slice(prefix.length + 1))
  );
}

/** Whether `value` is a UUID in its text form (RFC 9562), in either case. */
export function isUuid(value: string): boolean {
  return uuidPattern.test(value);
}

export { randomUUID as newUuid };

function ulid(now: number, random: Uint8Array): string {
  let time = '';
  for (let rest = now, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) {
    time = alphabet.charAt(rest % 32) + time;
  }
  let bits = 0n;
  for (const byte of random) bits = (bits << 8n) | BigInt(byte);
  let entropy = '';
  for (let i = 0; i < 16; i++, bits >>= 5n) entropy = alphabet.charAt(Number(bits & 31n)) + entropy;
  return time + entropy;
}

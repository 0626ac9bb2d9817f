/**
 * Identifiers, generated in code, in the contract's formats ("Identifier formats"): a prefix and a ULID
 * (https://github.com/ulid/spec: 48 bits of milliseconds, 80 random bits, Crockford base32) for Business resources, a
 * UUID for clusters and machines.
 */
import { randomBytes, randomUUID } from 'node:crypto';

export type IdPrefix =
  | 'org'
  | 'user'
  | 'ssh_key'
  | 'org_username'
  | 'reservation'
  | 'grant'
  | 'access_request'
  | 'command'
  | 'quote'
  | 'purchase'
  | 'server';

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A new identifier, such as `ssh_key_01JD…`. `now` is in milliseconds since 1970. */
export function newId(prefix: IdPrefix, now: number): string {
  return `${prefix}_${ulid(now)}`;
}

export function isId(prefix: IdPrefix, value: string): boolean {
  return (
    value.startsWith(`${prefix}_`) && /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(value.slice(prefix.length + 1))
  );
}

/** Checks for the text form of a UUID (RFC 9562), in either case. */
export function isUuid(value: string): boolean {
  return uuidPattern.test(value);
}

export { randomUUID as newUuid };

let lastTime = 0;
let lastEntropy = 0n;

/** Monotonic: ULIDs made by one process in the same millisecond sort in the order of creation. */
function ulid(now: number): string {
  if (now > lastTime) {
    lastTime = now;
    // The top bit is cleared, so that incrementing cannot overflow.
    lastEntropy = BigInt(`0x${randomBytes(10).toString('hex')}`) >> 1n;
  } else {
    lastEntropy += 1n;
  }
  return base32(BigInt(lastTime), 10) + base32(lastEntropy, 16);
}

function base32(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest >>= 5n) text = alphabet.charAt(Number(rest & 31n)) + text;
  return text;
}

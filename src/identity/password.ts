/**
 * Password hashes: scrypt (RFC 7914) with N = 2^15, r = 8, p = 3, one of the settings that OWASP's Password Storage
 * Cheat Sheet holds equal to N = 2^17, p = 1, and the one that needs the least memory (32 MiB). The parameters are
 * in the encoded hash, so they can be raised later and old hashes still verify:
 *
 *     $scrypt$ln=15,r=8,p=3$<salt>$<hash>        salt and hash in unpadded base64, as the PHC format has it
 */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../domain/error.ts';
import { checkNewPassword } from '../domain/password.ts';

const current = { ln: 15, r: 8, p: 3 };
const keyLength = 32;
const longest = 1024;
/** scrypt runs on libuv's four threads, which files and names need too; the rest waits, up to a bound. */
const atOnce = 2;
const mayWait = 64;

let running = 0;
const waiting: (() => void)[] = [];
/** What is checked where there is no account: the same cost, and never a match. */
const dummy = { ...current, salt: Buffer.alloc(16), key: Buffer.alloc(keyLength) };

/**
 * The encoded hash of a password. Throws `invalid_parameter` when it is empty or longer than 1024 characters, and
 * `service_unavailable` when too many are being hashed already.
 */
export async function hashPassword(password: string): Promise<string> {
  if (password === '' || password.length > longest) {
    throw new DomainError('invalid_parameter', `A password has between 1 and ${longest} characters.`);
  }
  const salt = randomBytes(16);
  const key = await derive(password, salt, current, keyLength);
  return `$scrypt$ln=${current.ln},r=${current.r},p=${current.p}$${base64(salt)}$${base64(key)}`;
}

/**
 * The encoded hash of a password that somebody chose, and the one way to set one. Throws `invalid_parameter` when it will
 * not do (domain/password.ts), and otherwise as `hashPassword`.
 */
export async function hashNewPassword(
  password: string,
  person: { email: string; displayName?: string | undefined },
): Promise<string> {
  checkNewPassword(password, person);
  return hashPassword(password);
}

/**
 * Whether the password is the one of the encoded hash. With no hash (no such account) or one that cannot be
 * read, the same work is done and the answer is no, so that the time taken does not reveal who has an account. Throws
 * `service_unavailable` when too many are being hashed already.
 */
export async function verifyPassword(password: string, hash: string | undefined): Promise<boolean> {
  const tooLong = password.length > longest;
  const parsed = parse(hash ?? '');
  const stored = parsed ?? dummy;
  const key = await derive(tooLong ? '' : password, stored.salt, stored, stored.key.length);
  return timingSafeEqual(key, stored.key) && parsed !== undefined && !tooLong;
}

interface Cost {
  ln: number;
  r: number;
  p: number;
}

function parse(encoded: string): (Cost & { salt: Buffer; key: Buffer }) | undefined {
  const match = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/]{22,86})\$([\w+/]{43})$/.exec(
    encoded,
  );
  if (!match) return undefined;
  const [, ln, r, p, salt = '', key = ''] = match;
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  if (cost.ln < 10 || cost.ln > 20 || cost.r < 1 || cost.p < 1 || cost.r * 2 ** cost.ln > 2 ** 23) {
    return undefined;
  }
  return { ...cost, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') };
}

async function derive(password: string, salt: Buffer, cost: Cost, length: number): Promise<Buffer> {
  await enter();
  try {
    const N = 2 ** cost.ln;
    // Node refuses more than 32 MiB without `maxmem`; twice what scrypt needs is enough for p.
    const options = { N, r: cost.r, p: cost.p, maxmem: 256 * N * cost.r };
    return await new Promise<Buffer>((resolve, reject) => {
      // The same password typed on another keyboard may come composed differently; NFKC makes the two equal.
      scrypt(password.normalize('NFKC'), salt, length, options, (error, key) =>
        error ? reject(error) : resolve(key),
      );
    });
  } finally {
    leave();
  }
}

async function enter(): Promise<void> {
  if (running < atOnce) {
    running++;
    return;
  }
  if (waiting.length >= mayWait) {
    throw new DomainError('service_unavailable', 'Too many people are signing in. Try again in a moment.');
  }
  await new Promise<void>((resolve) => waiting.push(resolve));
}

/** Starts the next in the queue; `running` falls only when the queue is empty. */
function leave(): void {
  const next = waiting.shift();
  if (next) next();
  else running--;
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

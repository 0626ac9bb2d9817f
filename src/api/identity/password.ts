/**
 * Password hashes: scrypt (RFC 7914) with N = 2^15, r = 8, p = 3, one of the settings that OWASP's Password Storage
 * Cheat Sheet holds equal to N = 2^17, p = 1, and the one that needs the least memory (32 MiB). The parameters are
 * in the encoded hash, so they can be raised later and old hashes still verify:
 *
 *     $scrypt$ln=15,r=8,p=3$<salt>$<hash>        salt and hash in unpadded base64, as the PHC format has it
 */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../domain/error.ts';
import { checkNewPassword } from '../../domain/people/password.ts';
import { type Claim, FairShares } from '../../lib/fair-shares.ts';

const current = { ln: 15, r: 8, p: 3 };
const keyLength = 32;
const longest = 1024;
/** The limit on concurrent hashes: scrypt runs on libuv's four threads, which file and DNS operations need too. */
const atOnce = 2;
/** The queue of further hashes; a request that would wait too long is refused, so that every answer comes within five seconds. */
const hashing = new FairShares({
  slots: atOnce,
  slotsOfUnknown: atOnce,
  waiting: 64,
  waitingPerSource: 64,
  waitMs: 4_000,
});

/** The requester on whose behalf a password is hashed: see `Claim`. */
export type Asker = Pick<Claim, 'source' | 'isKnown'>;

/** Verified when there is no account: the same cost, and never a match. */
const dummy = { ...current, salt: Buffer.alloc(16), key: Buffer.alloc(keyLength) };

/**
 * Hashes a password; `source` is whose share of the work it is. Throws `invalid_parameter` if it is empty or longer
 * than 1024 characters, and `service_unavailable` if too many are being hashed. Only signed-in people, or those on
 * the host itself, can set a password, so none counts as a stranger's.
 */
export async function hashPassword(password: string, source = ''): Promise<string> {
  if (password === '' || password.length > longest) {
    throw new DomainError('invalid_parameter', `A password has between 1 and ${longest} characters.`);
  }
  const salt = randomBytes(16);
  const stored = { ...current, salt, key: Buffer.alloc(keyLength) };
  const key = await derive(password, stored, { source, isKnown: true });
  return `$scrypt$ln=${current.ln},r=${current.r},p=${current.p}$${base64(salt)}$${base64(key)}`;
}

/**
 * Hashes a new password; every new password is set through this. Throws `invalid_parameter` if the password is not
 * allowed (domain/password.ts), and otherwise as `hashPassword`.
 */
export async function hashNewPassword(
  password: string,
  person: { email: string; displayName?: string | undefined },
): Promise<string> {
  checkNewPassword(password, person);
  return hashPassword(password, person.email);
}

/**
 * Verifies a password against an encoded hash. Without a hash (no such account), or with an unreadable one, the same
 * work is done and the result is false, so that the time taken does not reveal who has an account. Throws
 * `service_unavailable` if too many are being hashed.
 */
export async function verifyPassword(
  password: string,
  hash: string | undefined,
  asker: Asker,
): Promise<boolean> {
  const tooLong = password.length > longest;
  const parsed = parse(hash ?? '');
  const stored = parsed ?? dummy;
  const key = await derive(tooLong ? '' : password, stored, asker);
  return timingSafeEqual(key, stored.key) && parsed !== undefined && !tooLong;
}

interface Stored {
  ln: number;
  r: number;
  p: number;
  salt: Buffer;
  key: Buffer;
}

function parse(encoded: string): Stored | undefined {
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

async function derive(password: string, { ln, r, p, salt, key }: Stored, asker: Asker): Promise<Buffer> {
  const leave = await enterHashing(asker);
  try {
    const N = 2 ** ln;
    // Node refuses more than 32 MiB without `maxmem`; twice what scrypt needs is enough for p.
    const options = { N, r, p, maxmem: 256 * N * r };
    return await new Promise<Buffer>((resolve, reject) => {
      // The same password typed on another keyboard may be composed differently; NFKC makes the two equal.
      scrypt(password.normalize('NFKC'), salt, key.length, options, (error, derived) =>
        error ? reject(error) : resolve(derived),
      );
    });
  } finally {
    leave();
  }
}

/** Waits in the queue; returns the function that releases the slot. */
function enterHashing(asker: Asker): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const message = 'Too many people are signing in. Try again in a moment.';
    const claim: Claim = {
      ...asker,
      most: atOnce,
      start: () => resolve(() => hashing.leave(claim)),
      giveWay: () => reject(new DomainError('service_unavailable', message)),
    };
    hashing.enter(claim);
  });
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

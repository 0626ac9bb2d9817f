/**
 * SSH keys as age takes them (`ssh-ed25519` and `ssh-rsa` of age's own program; https://age-encryption.org/v1): what wraps
 * a file's key for a public key, and unwraps it with the private one. The library leaves both to its callers.
 */
import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
} from 'node:crypto';
import { Stanza } from 'age-encryption';
import { WireReader } from '../ssh/wire.ts';

export interface SshRecipient {
  wrapFileKey(fileKey: Uint8Array): Stanza[];
}

export interface SshIdentity {
  unwrapFileKey(stanzas: Stanza[]): Uint8Array | null;
}

const ed25519 = 'ssh-ed25519';
const rsa = 'ssh-rsa';
const ed25519Label = 'age-encryption.org/v1/ssh-ed25519';
const rsaLabel = Buffer.from('age-encryption.org/v1/ssh-rsa');
const leastRsaBits = 2048;

/** Of a line as in `authorized_keys`; undefined where it is no key that age takes. */
export function sshRecipient(line: string): SshRecipient | undefined {
  const [type, encoded = ''] = line.trim().split(/[ \t]+/);
  const blob = Buffer.from(encoded, 'base64');
  try {
    const fields = new WireReader(blob);
    if (fields.text() !== type) return undefined;
    if (type === ed25519) {
      const point = fields.bytes();
      return point.length === 32 && fields.left === 0 ? ed25519Recipient(blob, point) : undefined;
    }
    if (type !== rsa) return undefined;
    const [exponent, modulus] = [fields.bytes(), fields.bytes()];
    if (modulus.length < leastRsaBits / 8 || fields.left > 0) return undefined;
    const jwk = { kty: 'RSA', e: exponent.toString('base64url'), n: unsigned(modulus).toString('base64url') };
    return rsaRecipient(blob, createPublicKey({ key: jwk, format: 'jwk' }));
  } catch {
    return undefined;
  }
}

function ed25519Recipient(blob: Buffer, point: Buffer): SshRecipient {
  const theirs = montgomery(point);
  return {
    wrapFileKey(fileKey) {
      const pair = generateKeyPairSync('x25519');
      const share = rawPublic(pair.publicKey);
      const secret = tweaked(exchange(pair.privateKey, theirs), blob);
      const body = seal(wrappingKey(secret, share, theirs), fileKey);
      return [new Stanza([ed25519, tagOf(blob), unpadded(share)], body)];
    },
  };
}

function rsaRecipient(blob: Buffer, key: KeyObject): SshRecipient {
  return {
    wrapFileKey: (fileKey) => [new Stanza([rsa, tagOf(blob)], publicEncrypt({ key, ...oaep }, fileKey))],
  };
}

const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256', oaepLabel: rsaLabel };

/** Of an Ed25519 key by its public blob and its seed. */
export function ed25519Identity(blob: Buffer, seed: Buffer): SshIdentity {
  const key = x25519Private(createHash('sha512').update(seed).digest().subarray(0, 32));
  const ours = rawPublic(createPublicKey(key));
  return {
    unwrapFileKey(stanzas) {
      for (const { args, body } of stanzas) {
        const [type, tag, encoded = ''] = args;
        if (type !== ed25519 || tag !== tagOf(blob)) continue;
        const share = Buffer.from(encoded, 'base64');
        if (share.length !== 32) return null;
        return unseal(wrappingKey(tweaked(exchange(key, share), blob), share, ours), body);
      }
      return null;
    },
  };
}

/** Of an RSA key by its public blob. */
export function rsaIdentity(blob: Buffer, key: KeyObject): SshIdentity {
  return {
    unwrapFileKey(stanzas) {
      for (const { args, body } of stanzas)
        if (args[0] === rsa && args[1] === tagOf(blob)) return privateDecrypt({ key, ...oaep }, body);
      return null;
    },
  };
}

/** Which key a stanza is for: four bytes of its hash. */
function tagOf(blob: Buffer): string {
  return unpadded(createHash('sha256').update(blob).digest().subarray(0, 4));
}

/** A second exchange binds the secret to this one SSH key. */
function tweaked(secret: Buffer, blob: Buffer): Buffer {
  const tweak = Buffer.from(hkdfSync('sha256', Buffer.alloc(0), blob, ed25519Label, 32));
  return exchange(x25519Private(tweak), secret);
}

function wrappingKey(secret: Buffer, share: Buffer, theirs: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.concat([share, theirs]), ed25519Label, 32));
}

function seal(key: Buffer, text: Uint8Array): Buffer {
  const cipher = createCipheriv('chacha20-poly1305', key, Buffer.alloc(12), { authTagLength: 16 });
  return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

function unseal(key: Buffer, sealed: Uint8Array): Buffer | null {
  if (sealed.length !== 32) return null;
  const decipher = createDecipheriv('chacha20-poly1305', key, Buffer.alloc(12), { authTagLength: 16 });
  decipher.setAuthTag(sealed.subarray(16));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, 16)), decipher.final()]);
  } catch {
    return null;
  }
}

const p = 2n ** 255n - 19n;

/** The X25519 form of an Ed25519 point: u = (1 + y) / (1 − y) (RFC 7748, section 4.1). */
function montgomery(point: Buffer): Buffer {
  const little = Buffer.from(point);
  little[31] = (little[31] ?? 0) & 0x7f;
  const y = BigInt(`0x${little.reverse().toString('hex')}`) % p;
  const u = ((1n + y) * power(1n - y + p, p - 2n)) % p;
  return Buffer.from(u.toString(16).padStart(64, '0'), 'hex').reverse();
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let left = exponent, square = base % p; left > 0n; left >>= 1n, square = (square * square) % p)
    if (left & 1n) result = (result * square) % p;
  return result;
}

function exchange(privateKey: KeyObject, raw: Buffer): Buffer {
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: raw.toString('base64url') },
    format: 'jwk',
  });
  return diffieHellman({ privateKey, publicKey });
}

function x25519Private(raw: Buffer): KeyObject {
  const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');
  return createPrivateKey({ key: Buffer.concat([prefix, raw]), format: 'der', type: 'pkcs8' });
}

function rawPublic(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');
}

/** A number as SSH writes it, without the zero byte that keeps it positive. */
export function unsigned(mpint: Buffer): Buffer {
  return mpint[0] === 0 ? mpint.subarray(1) : mpint;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

/** The keys that encrypt secrets in the database, which are never in the database itself, and the encryption of single secrets. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { DomainError } from '../domain/error.ts';

export interface SecretsKey {
  /** Stored with each secret, to find its key. It reveals nothing of the key. */
  id: string;
  /** 32 bytes. */
  key: Buffer;
}

/** The key that encrypts, and former ones that still decrypt during a rotation. */
export interface SecretsKeys {
  /** The source of the keys, as the subject of a sentence. */
  source: string;
  keys: readonly [SecretsKey, ...SecretsKey[]];
  /** Reads the same source again. */
  reread(): SecretsKeys;
}

export const secretsKeyVariable = 'ANDROMEDA_SECRETS_KEY';

/** More than one key only during a rotation. */
const most = 4;
const form = /^[A-Za-z0-9+/]{43}=$/;

/** Parses keys, one a line. Throws `invalid_request` with a sentence that quotes nothing of the text. */
export function parseSecretsKeys(text: string, source: string, reread: () => SecretsKeys): SecretsKeys {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const [first, ...others] = lines.map(keyOf);
  if (!first || others.length >= most || lines.some((line) => !form.test(line)))
    throw new DomainError(
      'invalid_request',
      `${source} must hold one key a line, at most ${most}: 32 random bytes in base64. Make one with \`andromeda admin secrets new-key FILE\`, or: (umask 077; openssl rand -base64 32 > FILE)`,
    );
  return { source, keys: [first, ...others], reread };
}

export function makeSecretsKey(): string {
  return `${randomBytes(32).toString('base64')}\n`;
}

/** The key of this line, with its ID. */
function keyOf(line: string): SecretsKey {
  const key = Buffer.from(line, 'base64');
  const id = createHash('sha256').update('andromeda secrets key\n').update(key).digest('hex').slice(0, 16);
  return { id, key };
}

/** JSON, encrypted for one purpose (AES-256-GCM, RFC 5116): it opens with the same secret and purpose only. */
export function seal(value: unknown, secret: Buffer, purpose: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', derivedKey(secret, purpose), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** Decrypts a sealed value; undefined where this secret and purpose do not open it. */
export function unseal(text: string, secret: Buffer, purpose: string): unknown {
  const bytes = Buffer.from(text, 'base64url');
  try {
    const key = derivedKey(secret, purpose);
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAuthTag(bytes.subarray(12, 28));
    return JSON.parse(decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8'));
  } catch {
    return undefined;
  }
}

function derivedKey(secret: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `andromeda console ${purpose}`, 32));
}

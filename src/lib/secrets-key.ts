/** The key that secrets in the database are encrypted with, which is never in the database itself; and how a secret is sealed. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { DomainError } from '../domain/error.ts';

export interface SecretsKey {
  /** By which a secret says what it is encrypted with. It says nothing of the key. */
  id: string;
  /** 32 bytes. */
  key: Buffer;
}

/** The key that encrypts, and those that still decrypt while it takes their place. */
export interface SecretsKeys {
  /** Where they are from, as the subject of a sentence. */
  source: string;
  keys: readonly [SecretsKey, ...SecretsKey[]];
  /** The same source as it is now. */
  reread(): SecretsKeys;
}

export const secretsKeyVariable = 'ANDROMEDA_SECRETS_KEY';

/** More than one only while one takes the place of the other. */
const most = 4;
const form = /^[A-Za-z0-9+/]{43}=$/;

/** The keys of a text, one a line. Throws `invalid_request` with a sentence, which quotes nothing of it. */
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

/** The ID that a key of this text has. */
function keyOf(line: string): SecretsKey {
  const key = Buffer.from(line, 'base64');
  const id = createHash('sha256').update('andromeda secrets key\n').update(key).digest('hex').slice(0, 16);
  return { id, key };
}

/** JSON, sealed for one purpose (AES-256-GCM, RFC 5116): it opens with the same secret and purpose only. */
export function seal(value: unknown, secret: Buffer, purpose: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', derivedKey(secret, purpose), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** What was sealed; undefined where this secret and purpose do not open it. */
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

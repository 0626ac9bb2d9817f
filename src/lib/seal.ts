/** Encryption of what is kept for a browser, or of a person (AES-256-GCM, RFC 5116), with a key made from a secret. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** JSON, sealed for one purpose: it opens with the same secret and purpose only. */
export function seal(value: unknown, secret: Buffer, purpose: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret, purpose), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** What was sealed; undefined where this secret and purpose do not open it. */
export function unseal(text: string, secret: Buffer, purpose: string): unknown {
  const bytes = Buffer.from(text, 'base64url');
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(secret, purpose), bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return JSON.parse(decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8'));
  } catch {
    return undefined;
  }
}

function keyOf(secret: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `andromeda console ${purpose}`, 32));
}

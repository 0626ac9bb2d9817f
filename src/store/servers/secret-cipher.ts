/**
 * How a secret is encrypted in the database: AES-256-GCM (NIST SP 800-38D) with a random nonce. Its name and version are
 * authenticated with it, so that one cannot be put in the place of another.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { DomainError } from '../../domain/error.ts';
import type { SecretsKey, SecretsKeys } from '../../lib/secrets-key.ts';

export interface SealedSecret {
  name: string;
  version: number;
  keyId: string;
  /** Nonce, tag and text, in base64. */
  ciphertext: string;
}

export function sealSecret(
  { id, key }: SecretsKey,
  name: string,
  version: number,
  text: string,
): SealedSecret {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(associated(name, version));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const ciphertext = Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
  return { name, version, keyId: id, ciphertext };
}

/** Throws `invalid_state` with a sentence where none of the keys is the one, or the text was changed. */
export function openSecret(keys: SecretsKeys, sealed: SealedSecret): string {
  const { name, version, keyId, ciphertext } = sealed;
  const key = keys.keys.find(({ id }) => id === keyId);
  if (!key) throw new DomainError('invalid_state', wrongKey(keys, [keyId]));
  const bytes = Buffer.from(ciphertext, 'base64');
  try {
    const decipher = createDecipheriv('aes-256-gcm', key.key, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAAD(associated(name, version));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    throw new DomainError(
      'invalid_state',
      `The secret ${name} in the database was changed: what is there is not what was written. Restore the table \`secrets\` from a backup.`,
    );
  }
}

/** What to say where the secrets are encrypted with other keys than those at hand. */
export function wrongKey({ source, keys }: SecretsKeys, keyIds: readonly string[]): string {
  const held = keys.map(({ id }) => id).join(' and ');
  return `The secrets in the database are encrypted with the key ${keyIds.join(' and ')}, and ${source} holds ${held}. Bring the key that they were encrypted with: every server of one database has the same. Nothing was made anew.`;
}

function associated(name: string, version: number): Buffer {
  return Buffer.from(`andromeda secret\n${name}\n${version}`);
}

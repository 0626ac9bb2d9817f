/** Backups that leave the machine are encrypted with age (https://age-encryption.org/v1), which its own program reads too. */
import { Decrypter, Encrypter } from 'age-encryption';
import { DomainError } from '../../domain/error.ts';

export type Bytes = AsyncIterable<Uint8Array>;

/** What every file of age begins with. */
export const ageMagic = 'age-encryption.org/v1\n';

/** Encrypts to public keys. Throws `invalid_request` for one that is none. */
export async function* encrypt(source: Bytes, recipients: readonly string[]): Bytes {
  yield* (await createEncrypter(recipients).encrypt(ReadableStream.from(source))) as unknown as Bytes;
}

/** Throws `invalid_request` with a sentence for the first that is no public key. */
export async function requireRecipients(recipients: readonly string[]): Promise<void> {
  await createEncrypter(recipients).encrypt('');
}

function createEncrypter(recipients: readonly string[]): Encrypter {
  const encrypter = new Encrypter();
  for (const one of recipients) {
    try {
      encrypter.addRecipient(one);
    } catch {
      throw new DomainError(
        'invalid_request',
        `backup.encryptTo: ${one.slice(0, 40)}… is no public key of age (age1…). Was it cut off in copying?`,
      );
    }
  }
  return encrypter;
}

/**
 * Decrypts. Throws `invalid_request` with a sentence that begins with `name` where no identity fits, or what is read is not what
 * was encrypted: all of it must have been read before any of it is trusted.
 */
export async function* decrypt(source: Bytes, identities: readonly string[], name: string): Bytes {
  /** What the source failed with, as opposed to what the library throws. */
  let reading: unknown;
  async function* watched(): Bytes {
    try {
      yield* source;
    } catch (error) {
      reading = error;
      throw error;
    }
  }
  const decrypter = new Decrypter();
  try {
    for (const one of identities) decrypter.addIdentity(one);
    const plain = await decrypter.decrypt(ReadableStream.from(watched()));
    yield* plain as unknown as Bytes;
  } catch (error) {
    if (reading !== undefined) throw reading;
    const unmatched = /no identity matched/.test(String(error));
    const reason = unmatched
      ? 'is encrypted to other keys than that one; give the private key of one that backup.encryptTo named then (--identity FILE).'
      : 'is damaged: it cannot be decrypted to its end. Take another backup.';
    throw new DomainError('invalid_request', `${name} ${reason}`, { cause: error });
  }
}

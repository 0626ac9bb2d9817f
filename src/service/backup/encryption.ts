/** Backups that leave the machine are encrypted with age (https://age-encryption.org/v1), which its own program reads too. */
import { ReadableStream } from 'node:stream/web';
import { Decrypter, Encrypter } from 'age-encryption';
import { DomainError } from '../../domain/error.ts';

export type Bytes = AsyncIterable<Uint8Array>;

/** What every file of age begins with. */
export const ageMagic = 'age-encryption.org/v1\n';

/** Encrypts to public keys. Throws `invalid_request` for one that is none. */
export async function* encrypt(source: Bytes, recipients: readonly string[]): Bytes {
  yield* (await createEncrypter(recipients).encrypt(toStream(source))) as unknown as Bytes;
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
  let reading: unknown;
  const decrypter = new Decrypter();
  try {
    for (const one of identities) decrypter.addIdentity(one);
    const plain = await decrypter.decrypt(toStream(source, (error) => (reading = error)));
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

/** `failed` gets errors of the source, to distinguish them from what the library throws. */
function toStream(
  source: Bytes,
  failed: (error: unknown) => void = () => {},
): globalThis.ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        failed(error);
        controller.error(error);
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  }) as globalThis.ReadableStream<Uint8Array>;
}

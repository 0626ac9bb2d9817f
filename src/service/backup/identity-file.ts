/** The file with the private key of age that a backup is decrypted with. */
import { readFileSync, statSync } from 'node:fs';
import { DomainError } from '../../domain/error.ts';

const maxBytes = 64 * 1024;

/** The identities in a file. Throws `invalid_request` with a sentence that names it. */
export function readIdentities(file: string): string[] {
  const text = readText(file);
  const own = text.split(/\r?\n/).filter((line) => line.startsWith('AGE-SECRET-KEY-'));
  if (own.length > 0) return own.map((line) => line.trim());
  if (/^age-encryption\.org\/|-----BEGIN AGE ENCRYPTED FILE-----/.test(text))
    throw invalid(
      `${file} is itself encrypted. Decrypt it first: age --decrypt --output key.txt ${file}; and remove key.txt afterwards.`,
    );
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw invalid(
      `${file} is no key of age. A backup that was encrypted to an SSH key, age's own program decrypts: age --decrypt --identity ${file} --output plain.backup BACKUP, and restore plain.backup.`,
    );
  throw invalid(`${file} holds no key of age (AGE-SECRET-KEY-…), which decrypts a backup.`);
}

function readText(file: string): string {
  try {
    if (statSync(file).size > maxBytes) throw invalid(`${file} is no file of a key: it is too large.`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof DomainError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'there is no such file' : code;
    throw invalid(`The identity ${file} cannot be read: ${reason}.`);
  }
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}

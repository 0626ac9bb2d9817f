/** Files of keys for backups: the private key of age that decrypts them, and the key of S3-compatible storage. */
import { readFileSync, statSync } from 'node:fs';
import { DomainError } from '../../domain/error.ts';

const maxBytes = 64 * 1024;

/** The identities in a file. Throws `invalid_request` with a sentence that names it. */
export function readIdentities(file: string): string[] {
  const text = readText(file, (code) => {
    const reason = code === 'ENOENT' ? 'there is no such file' : code;
    return `The identity ${file} cannot be read: ${reason}.`;
  });
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

interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

/**
 * Reads the key as other programs have it (`~/.aws/credentials`). Throws `invalid_request` with a sentence that names the file, and
 * never with what is in it.
 */
export function readS3Credentials(file: string): S3Credentials {
  const setting = `backup.s3.credentials: ${file}`;
  const text = readText(
    file,
    (code) => `${setting} cannot be read (${code}). It has to be the service's account's own.`,
  );
  if (statSync(file).mode & 0o077) throw invalid(`${setting} can be read by others. chmod 600 ${file}`);
  const field = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)\\s*$`, 'm').exec(text)?.[1];
  const [accessKeyId, secretAccessKey] = [field('aws_access_key_id'), field('aws_secret_access_key')];
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid(`${setting} lacks a line "aws_access_key_id = …" or "aws_secret_access_key = …".`);
  return { accessKeyId, secretAccessKey };
}

/** `unreadable`: the sentence for the code of an error. */
function readText(file: string, unreadable: (code: string | undefined) => string): string {
  try {
    if (statSync(file).size <= maxBytes) return readFileSync(file, 'utf8');
  } catch (error) {
    throw invalid(unreadable((error as NodeJS.ErrnoException).code));
  }
  throw invalid(`${file} is no file of a key: it is too large.`);
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}

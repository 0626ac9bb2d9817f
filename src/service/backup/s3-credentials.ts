/** The file with the key of S3-compatible storage, as other programs have it (`~/.aws/credentials`). */
import { readFileSync, statSync } from 'node:fs';
import { DomainError } from '../../domain/error.ts';

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

/** Reads them. Throws `invalid_request` with a sentence that names the file, and never with what is in it. */
export function readS3Credentials(file: string): S3Credentials {
  const text = readText(file);
  const field = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)\\s*$`, 'm').exec(text)?.[1];
  const [accessKeyId, secretAccessKey] = [field('aws_access_key_id'), field('aws_secret_access_key')];
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid(
      `backup.s3.credentials: ${file} lacks a line "aws_access_key_id = …" or "aws_secret_access_key = …".`,
    );
  return { accessKeyId, secretAccessKey };
}

function readText(file: string): string {
  try {
    const { mode, size } = statSync(file);
    if (mode & 0o077)
      throw invalid(`backup.s3.credentials: ${file} can be read by others. chmod 600 ${file}`);
    if (size > 64 * 1024) throw invalid(`backup.s3.credentials: ${file} is too large for a key.`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof DomainError) throw error;
    throw invalid(
      `backup.s3.credentials: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}). It has to be the service's account's own.`,
    );
  }
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}

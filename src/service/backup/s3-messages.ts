/** What goes wrong with S3-compatible storage, as sentences that say what to do. */
import { S3Error, S3ServiceError } from 's3mini';
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { type Bucket, storageError } from './storage.ts';

/** By the code in the answer. */
const advice: Record<string, string> = {
  AccessDenied:
    'the key may not do that there. Give it the right to list, read, write and delete in the bucket',
  InvalidAccessKeyId: 'it does not know the key. Is backup.s3.credentials that of this storage?',
  SignatureDoesNotMatch: 'the secret of the key is wrong. Look at backup.s3.credentials',
  RequestTimeTooSkewed: 'the clock of this machine is not right. Set it',
  NoSuchBucket: 'the bucket does not exist. Make it, or name another one in backup.to',
  AuthorizationHeaderMalformed: 'the region is another one. Set backup.s3.region',
  PermanentRedirect: 'the bucket is somewhere else. Set backup.s3.endpoint and backup.s3.region',
  QuotaExceeded: 'the storage is full',
  InsufficientStorage: 'the storage is full',
};

/** The error of a sentence; undefined for one that is a sentence already, or a fault of the program. */
export function s3Sentence(error: unknown, { endpoint, bucket }: Bucket): DomainError | undefined {
  if (error instanceof DomainError || isAbort(error)) return undefined;
  const { cause } = error as Error;
  if (cause instanceof DomainError) return cause;
  const at = `${endpoint} (bucket ${bucket})`;
  if (error instanceof S3ServiceError) {
    const { serviceCode = '', status } = error;
    const known = advice[serviceCode];
    // A name of theirs goes into our log: letters only.
    const code = /^[A-Za-z]{1,64}$/.test(serviceCode) && serviceCode !== 'Unknown' ? `, ${serviceCode}` : '';
    const hint = known ? `: ${known}` : status >= 500 ? ': it is out of order' : '';
    return storageError(`The storage at ${at} refused with ${status}${code}${hint}.`, error);
  }
  const reason = networkReason(error);
  return reason === undefined
    ? undefined
    : storageError(`The storage at ${at} cannot be used: ${reason}.`, error);
}

function networkReason(error: unknown): string | undefined {
  const { name, cause } = error as Error;
  if (name === 'TimeoutError') return 'it does not answer in time';
  if (error instanceof S3Error)
    return (
      (error.cause instanceof Error ? networkReason(error.cause) : undefined) ??
      messageOf(error.cause ?? error)
    );
  if (error instanceof RangeError) return error.message;
  // How fetch says that the network failed: before an answer, and within one.
  if (error instanceof TypeError) {
    const { code, message } = (cause ?? error) as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') return 'nothing listens there';
    if (code === 'ENOTFOUND') return 'there is no such host';
    if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return 'it closed the connection';
    if (code !== undefined && /CERT|ISSUER|SIGNATURE|ALTNAME/.test(code))
      return `its certificate is not trusted (${code}). backup.s3.ca names one to trust`;
    return message;
  }
  return undefined;
}

function isAbort(error: unknown): boolean {
  return (error as Error | undefined)?.name === 'AbortError';
}

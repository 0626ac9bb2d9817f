/** The faults of a database by PostgreSQL's errors, and by those of connections to it. */
import { DomainError } from '../../../domain/error.ts';
import type { DatabaseFault } from '../dialect.ts';

/** An error of PostgreSQL's, or of the connection to it. Its message has none of the written data. */
export class PostgresError extends Error {
  override name = 'PostgresError';
  /** https://www.postgresql.org/docs/current/errcodes-appendix.html; undefined where the connection failed. */
  readonly sqlState: string | undefined;
  readonly isLost: boolean;
  /** Whether TLS failed, for which an operator has to change the URL or the server's certificate. */
  readonly isOfTls: boolean;
  /** Whether a host is a primary that is not to be served from (`primary.ts`). */
  readonly isFormer: boolean;

  constructor(
    message: string,
    {
      sqlState,
      isLost,
      isOfTls = false,
      isFormer = false,
    }: { sqlState?: string | undefined; isLost: boolean; isOfTls?: boolean; isFormer?: boolean },
  ) {
    super(message);
    this.sqlState = sqlState;
    this.isLost = isLost;
    this.isOfTls = isOfTls;
    this.isFormer = isFormer;
  }
}

/** Converts an error of `pg`. Any error that the server itself did not send means that the connection is lost. */
export function postgresError(error: unknown): PostgresError {
  if (error instanceof PostgresError) return error;
  const { message, code, severity } = error as Error & { code?: unknown; severity?: unknown };
  if (typeof severity !== 'string' || typeof code !== 'string') {
    const advice = tlsAdvice(message, code);
    return advice === undefined
      ? new PostgresError(message, { isLost: true })
      : new PostgresError(`${message} (${advice})`, { isLost: true, isOfTls: true });
  }
  // A statement that was prepared for tables as they were before an upgrade: a new connection prepares it again.
  const isOutdated = code === '0A000' && message.includes('cached plan');
  return new PostgresError(message, { sqlState: code, isLost: isOutdated || isFatal(severity, code) });
}

/**
 * The advice for a server without TLS, or with a certificate that is not accepted; undefined for any other error. An
 * expired one, or one that is not valid yet, is waited for: it is renewed there, or this machine's clock is set.
 */
function tlsAdvice(message: string, code: unknown): string | undefined {
  if (message.includes('does not support SSL'))
    return 'switch on ssl in its postgresql.conf, or have sslmode=prefer or disable in the URL';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'have the URL name the host as its certificate does, or sslmode=verify-ca, which checks only whose certificate it is, against sslrootcert';
  return typeof code === 'string' && unknownAuthority.test(code)
    ? 'have sslrootcert=FILE in the URL name the certificate of the authority that its certificate is of, in PEM'
    : undefined;
}

const unknownAuthority =
  /SELF_SIGNED|^UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|^CERT_(SIGNATURE_FAILURE|UNTRUSTED)/;

/** Whether the connection failed, an operator ended it, or the server has become a standby. */
function isFatal(severity: string, code: string): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || /^(08|57P)/.test(code) || code === '25006';
}

/** It is unknown whether a write was made: the connection was lost during its commit. */
export class CommitInDoubt extends DomainError {
  constructor(cause: unknown) {
    const message =
      'The database was lost while the change was made, and it is not known whether it was. Try again; the same Idempotency-Key makes no second one.';
    super('service_unavailable', message, { cause });
  }
}

const ofBegin = new WeakSet<object>();

/** Marks an error as one of a write that did not begin. */
export function failureToBegin(error: unknown): unknown {
  if (error instanceof Error) ofBegin.add(error);
  return error;
}

/** Whether a write failed because it did not begin: others that wait to begin would only wait again. */
export function isOfBegin(error: unknown): boolean {
  return error instanceof Error && ofBegin.has(error);
}

/** Whether each write of a failed commit would fail again by itself, or must not be tried again. */
export function isOfAll(error: unknown): boolean {
  return error instanceof CommitInDoubt || ofAll.has(postgresFault(error));
}

const ofAll = new Set<DatabaseFault | undefined>(['away', 'crowded', 'former', 'standby', 'locked', 'slow']);

export function isPostgresError(error: unknown): boolean {
  return error instanceof PostgresError;
}

/** The database fault that an error of PostgreSQL's reports; undefined for any other error. */
export function postgresFault(error: unknown): DatabaseFault | undefined {
  if (!(error instanceof PostgresError)) return undefined;
  const { sqlState = '', isLost, isFormer } = error;
  if (isFormer) return 'former';
  return faults[sqlState] ?? (isLost ? 'away' : undefined);
}

const faults: Record<string, DatabaseFault | undefined> = {
  '25006': 'standby',
  '42501': 'denied',
  '53100': 'full',
  '53200': 'away',
  '53300': 'crowded',
  '55P03': 'locked',
  '57014': 'slow',
  '58030': 'disk',
  XX001: 'damaged',
  XX002: 'damaged',
};

/** Whether a statement was given up for a lock that it waited for, or because it took too long. */
export function isHeldUp(error: unknown): boolean {
  const fault = postgresFault(error);
  return fault === 'locked' || fault === 'slow';
}

/** The error for the caller of a failed read: `service_unavailable` where the database is at fault, else the error itself. */
export function readError(error: unknown): unknown {
  const fault = postgresFault(error);
  if (fault === undefined) return error;
  const message = `The database ${readFaults[fault] ?? 'cannot be read'} at the moment. Try again.`;
  return new DomainError('service_unavailable', message, { cause: error });
}

const readFaults: Partial<Record<DatabaseFault, string>> = {
  away: 'cannot be reached',
  crowded: 'takes no more connections',
  former: 'has only a former primary, which lacks the last writes,',
  locked: 'is locked by another connection of it',
  slow: 'takes too long to answer, or a table of it is locked,',
};

/** A write, or a start, on a database that `andromeda migrate` has left (`endWrites`). */
export class MovedAway extends DomainError {
  constructor(code: 'service_unavailable' | 'invalid_state') {
    super(
      code,
      'This PostgreSQL takes no writes any more: `andromeda migrate` copied the installation out of it. Serve from the copy, and drop this database. To serve from this one all the same, with what it had then: insert into store_version select 1, extract(epoch from now())',
    );
  }
}

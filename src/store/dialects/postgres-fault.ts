/** What PostgreSQL's errors, and those of the way to it, say of the database. */
import { DomainError } from '../../domain/error.ts';
import type { DatabaseFault } from './dialect.ts';

/** An error of PostgreSQL's, or of the connection to it. Its message has nothing of what was written. */
export class PostgresError extends Error {
  override name = 'PostgresError';
  /** https://www.postgresql.org/docs/current/errcodes-appendix.html; undefined where the connection failed. */
  readonly sqlState: string | undefined;
  /** Whether the connection is of no use any more. */
  readonly isLost: boolean;

  constructor(message: string, { sqlState, isLost }: { sqlState?: string | undefined; isLost: boolean }) {
    super(message);
    this.sqlState = sqlState;
    this.isLost = isLost;
  }
}

/** An error of `pg` as one of ours. Anything but what the server itself sent means that the connection is gone. */
export function postgresError(error: unknown): PostgresError {
  if (error instanceof PostgresError) return error;
  const { message, code, severity } = error as Error & { code?: unknown; severity?: unknown };
  if (typeof severity !== 'string' || typeof code !== 'string')
    return new PostgresError(message, { isLost: true });
  // A statement that was prepared for tables as they were before an upgrade: a new connection prepares it again.
  const isOutdated = code === '0A000' && message.includes('cached plan');
  return new PostgresError(message, { sqlState: code, isLost: isOutdated || isFatal(severity, code) });
}

/** Where connections fail, an operator ends them, or the server has become a standby. */
function isFatal(severity: string, code: string): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || /^(08|57P)/.test(code) || code === '25006';
}

/** A write of which nobody knows whether it was made: the connection was lost while it was committed. */
export class CommitInDoubt extends DomainError {
  constructor(cause: unknown) {
    const message =
      'The database was lost while the change was made, and it is not known whether it was. Try again; the same Idempotency-Key makes no second one.';
    super('service_unavailable', message, { cause });
  }
}

/** Whether what failed with it fails again, or must not be tried again, by itself. */
export function isOfAll(error: unknown): boolean {
  return error instanceof CommitInDoubt || ['away', 'held'].includes(postgresFault(error) ?? '');
}

export function isPostgresError(error: unknown): boolean {
  return error instanceof PostgresError;
}

/** What it says of the database; undefined for any other error. */
export function postgresFault(error: unknown): DatabaseFault | undefined {
  if (!(error instanceof PostgresError)) return undefined;
  const { sqlState = '', isLost } = error;
  return faults[sqlState] ?? (isLost ? 'away' : undefined);
}

const faults: Record<string, DatabaseFault | undefined> = {
  '25006': 'away',
  '53100': 'full',
  '53200': 'away',
  '53300': 'away',
  '55P03': 'held',
  '57014': 'held',
  '58030': 'disk',
  XX001: 'damaged',
  XX002: 'damaged',
};

/** A failed reading as whoever asks is told: `service_unavailable` where the database is at fault, else the error itself. */
export function readError(error: unknown): unknown {
  if (postgresFault(error) === undefined) return error;
  const message = 'The database cannot be reached at the moment. Try again.';
  return new DomainError('service_unavailable', message, { cause: error });
}

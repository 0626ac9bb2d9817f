/**
 * Every deliberate refusal of the service. The message is written for the caller and safe to show; the `cause`, if
 * any, is for the log. Each wire (HTTP, command line, SSH) has one exhaustive map from the code.
 */
export type ErrorCode =
  | 'invalid_request'
  | 'invalid_parameter'
  | 'invalid_organization'
  | 'invalid_cluster'
  | 'invalid_pagination'
  | 'invalid_scheduler_config'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'invalid_state'
  | 'idempotency_mismatch'
  | 'precondition_failed'
  | 'too_many_requests'
  | 'service_unavailable'
  | 'integration_unavailable'
  | 'customer_kubernetes_login_not_configured';

export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Constructors of the most frequent refusals; each takes its message. */
export const invalidRequest = refusalOf('invalid_request');
export const invalidState = refusalOf('invalid_state');
export const notFound = refusalOf('not_found');
export const forbidden = refusalOf('forbidden');
export const unauthorized = refusalOf('unauthorized');

function refusalOf(code: ErrorCode): (message: string) => DomainError {
  return (message) => new DomainError(code, message);
}

/** A rate limit or daily limit is exceeded; carries the time until the next attempt is allowed. */
export class TooManyRequests extends DomainError {
  readonly waitMs: number;

  constructor(message: string, waitMs: number) {
    super('too_many_requests', message);
    this.waitMs = waitMs;
  }
}

export type SignInReason =
  | 'no_account'
  | 'deactivated'
  | 'again'
  | 'no_address'
  | 'scope'
  | 'bound'
  | 'audience'
  | 'issuer'
  | 'clock'
  | 'too_old';

/** A refused sign-in, with the reason for which the console's sign-in page has a text of its own. */
export class SignInRefusal extends DomainError {
  readonly reason: SignInReason;

  constructor(reason: SignInReason, message: string, options?: { cause?: unknown }) {
    super('unauthorized', message, options);
    this.reason = reason;
  }
}

/** An operation was stopped while it waited to begin; nothing has failed. */
export class StoppedError extends DomainError {
  constructor(message: string) {
    super('service_unavailable', message);
  }
}

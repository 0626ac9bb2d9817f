/**
 * Every refusal the service makes on purpose. The message is written for the caller and is safe to show; the
 * `cause`, if any, is for the log. Each wire (HTTP, command line, SSH) has one exhaustive map from the code.
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

/** The refusals that are made most, each with its message. */
export const invalidRequest = refusalOf('invalid_request');
export const invalidState = refusalOf('invalid_state');
export const notFound = refusalOf('not_found');
export const forbidden = refusalOf('forbidden');
export const unauthorized = refusalOf('unauthorized');

function refusalOf(code: ErrorCode): (message: string) => DomainError {
  return (message) => new DomainError(code, message);
}

/** More than a person may at once, or a day; it is possible again in so long. */
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

/** Why a person is not signed in, where a page of the console says it in words of its own. */
export class SignInRefusal extends DomainError {
  readonly reason: SignInReason;

  constructor(reason: SignInReason, message: string, options?: { cause?: unknown }) {
    super('unauthorized', message, options);
    this.reason = reason;
  }
}

/** What was asked to stop while it waited to begin: nothing has failed. */
export class StoppedError extends DomainError {
  constructor(message: string) {
    super('service_unavailable', message);
  }
}

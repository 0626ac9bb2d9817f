/** Maps errors to HTTP replies (contract, "Errors"). */
import { DomainError, type ErrorCode, notFound, TooManyRequests } from '../../domain/error.ts';

const statuses: Record<ErrorCode, number> = {
  invalid_request: 400,
  invalid_parameter: 422,
  invalid_organization: 400,
  invalid_cluster: 400,
  invalid_pagination: 400,
  invalid_scheduler_config: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  invalid_state: 409,
  idempotency_mismatch: 409,
  precondition_failed: 412,
  too_many_requests: 429,
  service_unavailable: 503,
  integration_unavailable: 503,
  customer_kubernetes_login_not_configured: 503,
};

const retryable: ReadonlySet<ErrorCode> = new Set([
  'too_many_requests',
  'service_unavailable',
  'integration_unavailable',
]);

export interface ErrorReply {
  status: number;
  headers: Record<string, string>;
  body: { code: string; message: string; retryable: boolean };
  /** True if the caller did not cause it, so that the log should contain the error itself. */
  unexpected: boolean;
}

/** The reply for any error that an operation or middleware threw. The message of an unexpected error stays hidden. */
export function errorReply(error: unknown): ErrorReply {
  if (error instanceof DomainError) return domainReply(error);
  if (isHttpError(error)) return requestReply(error);
  const message = 'Something went wrong inside the service. Its log has the details.';
  return reply(500, { code: 'internal', message, retryable: false }, true);
}

/**
 * The reason of a refused authentication, for the log: the reply's message, and the code of the cause (such as jose's
 * `ERR_JWKS_NO_MATCHING_KEY`). Undefined for any other error. It contains nothing of the token.
 */
export function refusalReason(error: unknown): string | undefined {
  if (!(error instanceof DomainError && error.code === 'unauthorized')) return undefined;
  const { message, cause } = error;
  const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
  return `${message}${code}`;
}

export function addressNotFound(): DomainError {
  return notFound('There is no such address here, or it does not take this method.');
}

function domainReply(error: DomainError): ErrorReply {
  // A parameter that fails its schema and a malformed request share a code and differ in status.
  const code = error.code === 'invalid_parameter' ? 'invalid_request' : error.code;
  const body = { code, message: error.message, retryable: retryable.has(error.code) };
  const headers: Record<string, string> = {
    ...(error.code === 'unauthorized' && { 'WWW-Authenticate': 'Bearer' }),
    // The service itself retries an unavailable dependency, such as the database, at this interval.
    ...(error.code === 'service_unavailable' && { 'Retry-After': '1' }),
    ...(error instanceof TooManyRequests && { 'Retry-After': String(Math.ceil(error.waitMs / 1000)) }),
  };
  const status = statuses[error.code];
  return { ...reply(status, body, status === 503 && error.cause !== undefined), headers };
}

/** An error of Express, body-parser or our checks: a status, and for the latter the paths of the faults. */
interface HttpError extends Error {
  status: number;
  type?: string;
  /** For a body that is too large: the limit in bytes. */
  limit?: number;
  errors?: { path: string; message: string }[];
}

function isHttpError(error: unknown): error is HttpError {
  return (
    error instanceof Error && 'status' in error && typeof error.status === 'number' && error.status < 500
  );
}

function requestReply(error: HttpError): ErrorReply {
  const invalid = (status: number, message: string) =>
    reply(status, { code: 'invalid_request', message, retryable: false });
  if (error.type === 'entity.parse.failed') return invalid(400, 'The request body is not readable as JSON.');
  if (error.type === 'entity.too.large') {
    return invalid(400, `The request body is larger than ${(error.limit ?? 0) / 2 ** 20} MiB.`);
  }
  if (error.status === 404) return domainReply(addressNotFound());
  if (error.status === 415) return invalid(400, 'Send the request body as application/json, in UTF-8.');
  const faults = error.errors ?? [];
  if (faults.length === 0) return invalid(400, 'The request is malformed.');
  const sentences = new Set(faults.map(({ path, message }) => `${location(path)} ${message}`));
  return invalid(422, `${[...sentences].join('; ')}.`);
}

function location(path: string): string {
  const [, where, ...rest] = path.split('/');
  const name = rest.join('.');
  if (where === 'query') return `The query parameter ${name}`;
  return name ? `The field ${name} of the ${where}` : `The ${where}`;
}

function reply(status: number, body: ErrorReply['body'], unexpected = false): ErrorReply {
  return { status, headers: {}, body, unexpected };
}

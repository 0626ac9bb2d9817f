/** The span of a request to an operation. */
import type { Request, Response } from 'express';
import { plainAddress, type TrustedProxies } from '../../lib/source-address.ts';
import { parseTraceparent, type Span, type Tracer } from '../../lib/trace.ts';

/**
 * Begins it. A trusted proxy's `traceparent` is its parent. Anyone else's is a link: or strangers could add to traces that are
 * not theirs, and have all of their requests kept.
 */
export function beginRequestSpan(
  tracer: Tracer,
  { api, operation, proxies }: { api: string; operation: string; proxies: TrustedProxies },
  request: Request,
): Span {
  const given = parseTraceparent(request.headers.traceparent);
  const isTrusted = proxies.has(plainAddress(request.socket.remoteAddress ?? ''));
  return tracer.begin(`${api} ${operation}`, {
    kind: 'server',
    ...(given && (isTrusted ? { parent: given } : { links: [given] })),
    attributes: { 'http.request.method': request.method, 'andromeda.operation': operation },
  });
}

/** Ends it with what became of the request. */
export function endRequestSpan(span: Span, { locals }: Response, status: number): void {
  span.set({
    'http.response.status_code': status,
    'andromeda.request_id': locals.requestId,
    'andromeda.user_id': locals.userId,
    'andromeda.command_id': locals.commandId,
  });
  span.end(status >= 500 ? `${status}` : undefined);
}

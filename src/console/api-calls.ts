/**
 * Calls of the APIs: the browser's own request, handed to the API's application with the person's token in the place of
 * the cookie. Everything that holds for a call from elsewhere holds for it: checks, limits, the log.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DomainError } from '../domain/error.ts';
import { requireOwnPage } from './headers.ts';
import type { Sessions } from './sessions.ts';

/** Pages and facts of the API's own listener, which are no operations. */
const notHere = /^\/(docs|openapi\.json|healthz|readyz|\.well-known)(\/|$)/;

export async function callApi(
  { sessions, apis }: { sessions: Sessions; apis: { business: RequestListener; platform: RequestListener } },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  requireOwnPage(request);
  const [, name, path = ''] = /^\/api\/(business|platform)(\/[^?#]*)/.exec(request.url ?? '') ?? [];
  if ((name !== 'business' && name !== 'platform') || notHere.test(path)) {
    throw new DomainError('not_found', 'There is no such address here.');
  }
  const { authorization } = await sessions.of(request);
  // Gone while its tokens were renewed.
  if (request.destroyed && !request.complete) return void response.destroy();
  request.url = (request.url ?? '').slice(`/api/${name}`.length);
  request.headers.authorization = authorization;
  delete request.headers.cookie;
  apis[name](request, response);
}

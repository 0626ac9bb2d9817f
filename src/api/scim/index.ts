/**
 * SCIM 2.0 (RFC 7643, 7644) at `/scim/v2`: an identity provider pushes people and groups with a token of its own. Owns what is answered
 * there; knows nothing of the other APIs, whose listener it shares.
 *
 * Flow: a request → its token → a resource's file → one write with its audit entry.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { DomainError, type ErrorCode } from '../../domain/error.ts';
import { badScim, ScimError } from '../../domain/scim/error.ts';
import { errorBody, listBody } from '../../domain/scim/resource.ts';
import { providerConfig, resourceTypes, schemas } from '../../domain/scim/service.ts';
import type { Logger } from '../../lib/log.ts';
import { clientAddress } from '../../lib/source-address.ts';
import { Groups } from './groups.ts';
import type { ScimOptions } from './options.ts';
import { createTokenCheck, readJson } from './request.ts';
import { answerResource, type ScimReply } from './resources.ts';
import { createUsers } from './users.ts';

const root = '/scim/v2';

/** Which addresses are SCIM's, and what answers there. */
export function createScim(options: ScimOptions): { owns(path: string): boolean; handle: RequestListener } {
  const { store, proxies, log } = options;
  const base = `${options.url.replace(/\/$/, '')}${root}`;
  const checkToken = createTokenCheck(store);
  const kinds = { Users: createUsers(options, base), Groups: new Groups(options, base) };

  async function answer(request: IncomingMessage): Promise<ScimReply> {
    const address = clientAddress(proxies, request);
    await checkToken(request.headers.authorization, address);
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://scim.invalid');
    const [, name = '', id, ...more] = pathname.slice(root.length).replace(/\/$/, '').split('/');
    const method = request.method ?? 'GET';
    if (name !== 'Users' && name !== 'Groups') return answerAbout(method, name, id, query);
    if (more.length > 0) throw nothingHere();
    const body = ['POST', 'PUT', 'PATCH'].includes(method) ? await readJson(request) : undefined;
    const { headers } = request;
    return answerResource(kinds[name], { method, id, query, body, address, headers, now: options.now() });
  }

  return {
    owns: (path) => path === root || path.startsWith(`${root}/`),
    handle(request, response) {
      answer(request)
        .catch((error: unknown) => replyOf(error, log))
        .then((reply) => send(request, response, reply))
        .catch((error: unknown) => {
          log.error('scim.failed', { error });
          response.destroy();
        });
    },
  };
}

/** What the service says of itself. */
function answerAbout(
  method: string,
  name: string,
  id: string | undefined,
  query: URLSearchParams,
): ScimReply {
  if (name === 'Me' || name === 'Bulk') throw new ScimError(501, `There is no /${name} here.`);
  if (method !== 'GET') throw new ScimError(405, 'This address does not take this method.');
  if (query.has('filter')) throw new ScimError(403, 'This list has no filter.');
  if (name === 'ServiceProviderConfig' && id === undefined) return { status: 200, body: providerConfig };
  const all = name === 'Schemas' ? schemas : name === 'ResourceTypes' ? resourceTypes : undefined;
  if (!all) throw nothingHere();
  if (id === undefined) {
    return { status: 200, body: listBody(all, { startIndex: 1, count: all.length }, all.length) };
  }
  const one: object | undefined = all.find((each) => each.id === id);
  if (!one) throw nothingHere();
  return { status: 200, body: one };
}

function nothingHere(): ScimError {
  return new ScimError(404, 'There is no such address here.');
}

const kindsOfRefusal: Partial<Record<ErrorCode, (message: string) => ScimError>> = {
  invalid_request: (message) => badScim('invalidValue', message),
  invalid_state: (message) => new ScimError(409, message, 'uniqueness'),
  service_unavailable: (message) => new ScimError(503, message),
};

/** The reply for what was thrown. What is not ours stays in the log. */
function replyOf(error: unknown, log: Logger): ScimReply {
  const refusal =
    error instanceof DomainError ? (kindsOfRefusal[error.code]?.(error.message) ?? error) : error;
  if (refusal instanceof ScimError) {
    const { status } = refusal;
    const headers: Record<string, string> = {
      ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }),
      ...((status === 429 || status === 503) && { 'Retry-After': status === 429 ? '60' : '1' }),
    };
    return { status, headers, body: errorBody(refusal) };
  }
  log.error('scim.failed', { error });
  const message = 'Something went wrong inside the service. Its log has the details.';
  return { status: 500, body: errorBody({ status: 500, message, scimType: undefined }) };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers = {}, body }: ScimReply,
): void {
  const text = body === undefined ? '' : JSON.stringify(body);
  // What is left of a body that was not read ends the connection, or it would be taken for the next request.
  const ends = request.complete ? {} : { Connection: 'close' };
  response.writeHead(status, {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...(body !== undefined && { 'Content-Type': 'application/scim+json; charset=utf-8' }),
    ...(status !== 204 && status !== 304 && { 'Content-Length': Buffer.byteLength(text) }),
    ...ends,
    ...headers,
  });
  response.end(text);
}

/**
 * The HTTP layer, and the only folder that knows Express. The flow of an API: authenticate → parse and check the
 * request against the YAML → operation → reply or error. Both APIs are made by `createApi` from their documents, so
 * no table of routes has to be kept in step. Operations are implemented in other folders.
 */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { DomainError, invalidRequest } from '../../domain/error.ts';
import type {
  CommandHeaders,
  CommandReply,
  Request as OperationRequest,
  Tagged,
  WriteHeaders,
} from '../../domain/operation.ts';
import { hasNul, storedTextsIn } from '../../domain/text.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import { clientAddress, type TrustedProxies } from '../../lib/source-address.ts';
import { type CheckRequest, createBodyReader, createChecks } from './check.ts';
import { docsHeaders, renderDocs } from './docs.ts';
import { type Document, type DocumentOperation, operationsOf } from './document.ts';
import { addressNotFound, errorReply, refusalReason } from './errors.ts';
import { sendCsv, sendJson } from './reply.ts';

export interface ApiOptions<Deps> {
  name: 'business' | 'platform';
  document: Document;
  sibling: { title: string; url: string };
  // biome-ignore lint/suspicious/noExplicitAny: the document is what ties a request's type to its operation
  operations: Record<string, (deps: Deps, request: any) => Promise<unknown>>;
  deps: Deps;
  /** Returns the user ID for an Authorization header. Throws `unauthorized` or, on Platform, `forbidden`. */
  authenticate(authorization: string | undefined): Promise<string>;
  beside?: { owns(path: string): boolean; handle: RequestListener };
  /** The console, to which browsers are led from `/`. */
  consoleUrl?: string | undefined;
  checkReady(): Promise<void>;
  proxies: TrustedProxies;
  log: Logger;
  now(): number;
}

export function createApi<Deps>(options: ApiOptions<Deps>): Express {
  const { document, log } = options;
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  // The same parser as Express's simple one, which silently drops parameters beyond the thousandth.
  app.set('query parser', (text: string) => parseQuery(text, undefined, undefined, { maxKeys: 0 }));
  app.set('case sensitive routing', true);
  // Express's own computes charset, length and freshness for every reply; Node sets the length, and no reply is cached.
  app.response.json = function json(body: unknown) {
    sendJson(this, body);
    return this;
  };

  const authenticate: RequestHandler = async (request, response, next) => {
    response.locals.userId = await options.authenticate(request.headers.authorization);
    next();
  };
  const { beside } = options;
  const logWhenDone = createRequestLog(options);
  app.use((request, response, next) => {
    logWhenDone(request, response);
    const { path } = request;
    if (beside?.owns(path)) beside.handle(request, response);
    // The router refuses an undecodable address, and would do so before authentication.
    else if (isDecodable(path)) next();
    else return authenticate(request, response, next);
  });
  app.get('/', leadBrowsersTo(options.consoleUrl));
  let docs: string | undefined;
  const documentText = JSON.stringify(document, null, 2);
  app.get('/openapi.json', (_request, response) => response.type('application/json').send(documentText));
  app.get('/docs', (_request, response) => {
    docs ??= renderDocs(options);
    response.set(docsHeaders).type('text/html').send(docs);
  });
  app.get('/healthz', (_request, response) => response.json({ status: 'ok' }));
  app.get('/readyz', readiness(options));

  mountOperations(app, options, authenticate);
  // Callers without a token cannot find out which addresses exist.
  app.use(authenticate);
  app.use(() => {
    throw addressNotFound();
  });
  app.use(answerError(log));
  return app;
}

/** Browsers ask for HTML; a program gets what it gets at any address that is none. */
function leadBrowsersTo(url: string | undefined): RequestHandler {
  return (request, response, next) =>
    url !== undefined && request.accepts(['json', 'html']) === 'html' ? response.redirect(url) : next();
}

/** RFC 9745, with the day from which there was another operation for it. */
const markDeprecated: RequestHandler = (_request, response, next) => {
  response.set('Deprecation', `@${Date.parse('2026-11-21') / 1000}`);
  next();
};

function mountOperations<Deps>(app: Express, options: ApiOptions<Deps>, authenticate: RequestHandler): void {
  const checksOf = createChecks(options.document);
  for (const operation of operationsOf(options.document)) {
    const steps = [
      named(operation.operationId),
      operation.source.deprecated ? markDeprecated : [],
      operation.isPublic ? [] : authenticate,
      operation.source.requestBody ? createBodyReader(operation.bodyLimit, operation.bodyValues) : [],
    ].flat();
    const check = checksOf(operation.source);
    app[operation.method](operation.route, ...steps, (request, response) =>
      answer(options, operation, check, request, response),
    );
  }
}

function readiness<Deps>({ checkReady, log }: ApiOptions<Deps>): RequestHandler {
  const logUnready = createUnreadyLog(log);
  let wasReady = false;
  return async (_request, response) => {
    await checkReady().catch((cause: unknown) => {
      // A service that has never been ready is still starting, which is no error.
      logUnready(wasReady ? 'error' : 'warn', cause);
      // The cause is in that log line, and not repeated for each caller.
      if (cause instanceof DomainError) throw new DomainError(cause.code, cause.message);
      throw new DomainError('service_unavailable', 'The service cannot serve at the moment.', { cause });
    });
    wasReady = true;
    response.json({ status: 'ready' });
  };
}

/** Responds with the thrown error. Express recognizes error handlers by their four parameters. */
function answerError(log: Logger): ErrorRequestHandler {
  return (error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const { status, headers, body, unexpected } = errorReply(error);
    response.locals.refusal = refusalReason(error);
    if (unexpected) {
      const { requestId } = response.locals;
      log.error('http.failed', { requestId, method: request.method, path: request.path, error });
    }
    if (response.headersSent) return response.destroy();
    response.status(status).set(headers);
    const { message, ...others } = body;
    // Errors of the key routes have `error` in place of `message`.
    response.json(response.locals.errorField === true ? { ...others, error: message } : body);
  };
}

/** The interval at which the same reason is logged at most: anyone can call `/readyz` at any rate. */
const logUnreadyEveryMs = 10_000;

function createUnreadyLog(log: Logger): (level: 'error' | 'warn', cause: unknown) => void {
  let last: { message: string; at: number } | undefined;
  return (level, cause) => {
    const now = performance.now();
    const message = messageOf(cause);
    if (last && last.message === message && now - last.at < logUnreadyEveryMs) return;
    last = { message, at: now };
    log[level]('http.unready', { error: cause });
  };
}

/** Gives every request an ID, the caller's own if it is well-formed, and logs one line when the reply is sent. */
function createRequestLog<Deps>({ name, proxies, log }: ApiOptions<Deps>) {
  return (request: Request, response: Response): void => {
    const started = performance.now();
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
    response.locals.requestId = requestId;
    const address = clientAddress(proxies, request);
    response.locals.address = address;
    response.setHeader('X-Request-Id', requestId);
    const { method, path } = request;
    response.once('close', () => {
      const { operation, userId, commandId, refusal } = response.locals;
      // A client that closed the connection gets no reply, whatever the status would have been.
      const status = response.writableFinished ? response.statusCode : 499;
      const ms = Math.round((performance.now() - started) * 100) / 100;
      const level = operation === undefined ? 'debug' : 'info';
      const line = { api: name, requestId, operation, method, path, address, status, ms };
      log[level]('http.request', { ...line, userId, commandId, refusal });
    });
  };
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function named(operation: string): RequestHandler {
  return (_request, response, next) => {
    response.locals.operation = operation;
    next();
  };
}

async function answer<Deps>(
  options: ApiOptions<Deps>,
  operation: DocumentOperation,
  check: CheckRequest,
  request: Request,
  response: Response,
): Promise<void> {
  const run = options.operations[operation.answeredBy];
  if (!run) throw new Error(`openapi names ${operation.answeredBy}, which is not an operation`);
  const { headers, body } = request;
  // Unstorable text is replaced: no object has such a name, so the operation replies as for any unknown name.
  const [path, query] = [storedTextsIn(request.params), storedTextsIn(request.query)];
  check({ path, query, headers, body });
  // Only for the operation's own refusals; authentication and schema errors keep the standard body.
  response.locals.errorField = operation.errorField;
  const input: Omit<OperationRequest, 'command' | 'write'> = {
    caller: {
      userId: response.locals.userId,
      sourceAddress: response.locals.address,
    },
    path,
    query,
    body,
    now: options.now(),
  };
  const valuesOf = (name: string) => request.headersDistinct[name.toLowerCase()] ?? [];
  if (operation.isTagged) {
    const write = writeHeaders(valuesOf);
    const tagged = (await run(options.deps, { ...input, write })) as Tagged<unknown>;
    response.set('ETag', tagged.etag).json(tagged.body);
    return;
  }
  if (!operation.isCommand) {
    const body = await run(options.deps, input);
    if (typeof body === 'string') sendCsv(response, body);
    else response.json(body);
    return;
  }
  const command = commandHeaders(valuesOf);
  const reply = (await run(options.deps, { ...input, command })) as CommandReply<unknown>;
  const { replayed, result } = reply;
  response.locals.commandId = reply.commandId;
  response.status(operation.creates && !replayed ? 201 : 200).json(result);
}

type ValuesOf = (name: string) => readonly string[];

const mostOfKey = 200;
const mostOfReason = 500;

/**
 * Validates both headers, given all values that each was sent with. Throws `invalid_request` with a sentence that
 * names the invalid header.
 */
function commandHeaders(header: ValuesOf): CommandHeaders {
  return {
    idempotencyKey: required(header, 'Idempotency-Key', mostOfKey),
    auditReason: required(header, 'Audit-Reason', mostOfReason),
  };
}

/** Validates the optional headers of a write. Throws as above. */
function writeHeaders(header: ValuesOf): WriteHeaders {
  const given = (name: string) => header(name).length > 0;
  const auditReason = given('Audit-Reason') ? required(header, 'Audit-Reason', mostOfReason) : '';
  // A replacement needs no key (contract, rule 9), since it can be repeated; a conditional one cannot.
  if (!given('If-Match')) return { auditReason };
  return {
    auditReason,
    ifMatch: tagsOf(required(header, 'If-Match', mostOfKey)),
    ...(given('Idempotency-Key') && { idempotencyKey: required(header, 'Idempotency-Key', mostOfKey) }),
  };
}

/** RFC 9110, 13.1.1: `*`, or strong tags. Weak tags never match, so they are refused. */
function tagsOf(value: string): string[] {
  if (value === '*') return ['*'];
  const tags = value.split(',').map((tag) => tag.trim());
  if (tags.every((tag) => /^"[\x21\x23-\x7e]*"$/.test(tag))) return tags;
  throw invalidRequest('The header If-Match takes an ETag as it was given, such as "7".');
}

function required(header: ValuesOf, name: string, most: number): string {
  const [text = '', another] = header(name);
  if (another !== undefined) throw invalidRequest(`The header ${name} is there twice.`);
  // Node reads header bytes as Latin-1; most clients that send anything beyond ASCII send UTF-8.
  const bytes = Buffer.from(text, 'latin1');
  const value = (isUtf8(bytes) ? bytes.toString('utf8') : text).trim();
  if (value === '') throw invalidRequest(`The header ${name} is missing.`);
  // Node's parser refuses it today; this check does not rely on that.
  if (hasNul(value)) throw invalidRequest(`The header ${name} has a NUL character.`);
  if ([...value].length > most) {
    throw invalidRequest(`The header ${name} is longer than ${most} characters.`);
  }
  return value;
}

/**
 * A second opinion on the APIs, by a library that shares no code with the service: every request that was carried out
 * and every reply, compared with the YAML. It looks on, and changes nothing of what is sent.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { ErrorRequestHandler, Express } from 'express';
import { askJudge } from './shared-judge.ts';

export type ApiName = 'business' | 'platform';

/** One request and its reply, as they went over the wire. */
export interface Exchange {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
  status: number;
  replyType: string;
  reply: string;
}

interface Judge {
  requests: Express;
  replies: Express;
}

const judges = new Map<ApiName, Promise<Judge>>();
/** Digests of the exchanges that nothing was wrong with: who waits for something asks the same again and again. */
const fine = new Set<string>();

/**
 * What is wrong with an exchange: a reply that is none of the document's, or a request that was carried out although
 * the document does not have it. What the service refuses is its own affair.
 */
export async function judge(api: ApiName, exchange: Exchange): Promise<string[]> {
  const made = judges.get(api) ?? makeJudge(api);
  judges.set(api, made);
  const { requests, replies } = await made;
  const isDone = exchange.status >= 200 && exchange.status < 300;
  // Of a table for spreadsheets the document says no more than that it is text.
  const isTable = isDone && exchange.replyType.startsWith('text/csv');
  const faults = [
    isTable ? undefined : await ask(replies, exchange),
    isDone ? await ask(requests, exchange) : undefined,
  ];
  return faults.flatMap((fault) =>
    fault === undefined ? [] : `${exchange.method} ${exchange.url} → ${exchange.status}: ${fault}`,
  );
}

/** The same, by the judge that all files of a run share, and each exchange once. */
async function judgeOnce(api: ApiName, exchange: Exchange): Promise<string[]> {
  const digest = digestOf(api, exchange);
  if (fine.has(digest)) return [];
  const shared = process.env['ANDROMEDA_TEST_SHARED'];
  const faults = await (shared === undefined ? judge(api, exchange) : askJudge(shared, api, exchange));
  if (faults.length === 0) fine.add(digest);
  return faults;
}

/** Of all that is judged. What is left out of the headers changes with each request, and no document says anything of it. */
function digestOf(api: ApiName, { headers, ...rest }: Exchange): string {
  const { authorization: _, 'x-request-id': __, ...others } = headers;
  return createHash('sha256')
    .update(JSON.stringify([api, others, rest]))
    .digest('base64');
}

async function makeJudge(api: ApiName): Promise<Judge> {
  // Takes half a second, and many test files ask no API.
  const { middleware } = await import('express-openapi-validator');
  const { default: express } = await import('express');
  const steps = middleware({
    apiSpec: join(import.meta.dirname, `../../openapi/${api}.yaml`),
    validateApiSpec: false,
    validateRequests: { allErrors: true },
    validateResponses: true,
    validateSecurity: false,
  });
  const without = (name: string) => {
    assert.ok(
      steps.some((step) => step.name === name),
      `the library has no ${name} any more`,
    );
    const app = express();
    app.use(...steps.filter((step) => step.name !== name));
    app.use((_request, response) => {
      response.json(response.locals['body']);
      response.locals['resolve']();
    });
    app.use(explain);
    return app;
  };
  return { requests: without('responseMiddleware'), replies: without('requestMiddleware') };
}

/** What the library says of an exchange; undefined when it is content, or the document does not have the address. */
function ask(app: Express, exchange: Exchange): Promise<string | undefined> {
  return new Promise((resolve) => {
    const { method, headers } = exchange;
    const url = encoded(exchange.url);
    const body = parsed(headers['content-type'], exchange.body);
    const request = Object.assign(new IncomingMessage(new Socket()), { method, url, headers, body });
    const response = Object.assign(new ServerResponse(request), {
      statusCode: exchange.status,
      locals: { resolve, body: parsed(exchange.replyType, exchange.reply) },
    });
    app(request, response);
  });
}

const explain: ErrorRequestHandler = (error, _request, response, _next) => {
  const isElsewhere = error.status === 404 || error.status === 405 || /^malformed uri/.test(error.message);
  const faults = (error.errors ?? []) as { path: string; message: string }[];
  const text = [error.message, ...faults.map(({ path, message }) => `${path} ${message}`)].join('; ');
  response.locals['resolve'](isElsewhere ? undefined : text);
};

/** The library takes offence at an `@` or `:` in a query, which means the same there as when it is encoded. */
function encoded(url: string): string {
  const [path = '', query] = url.split(/\?(.*)/s);
  return query === undefined ? path : `${path}?${new URLSearchParams(query)}`;
}

/** A body as data; one that is not what it says it is stays a text, which no schema of ours takes. */
function parsed(type: string | undefined, text: string): unknown {
  if (text === '') return undefined;
  try {
    return type?.includes('json') ? JSON.parse(text) : text;
  } catch {
    return text;
  }
}

/** Node reads headers as Latin-1; ours are UTF-8, and limits count characters. */
function inUtf8(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const decoded = (value: string | string[] | undefined) =>
    typeof value === 'string' ? Buffer.from(value, 'latin1').toString() : value;
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, decoded(value)]));
}

export interface Watch {
  /** Waits until all is judged, and throws where something is wrong. */
  end(): Promise<void>;
}

/** Judges what goes over some ports of this process from now on, whoever asks. */
export function watchApis(ports: Record<ApiName, number>): Watch {
  const pending = new Set<Promise<void>>();
  const faults = new Set<string>();
  const onStart = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const [api] = apis.filter((name) => ports[name] === request.socket.localPort);
    if (!api || !['GET', 'POST', 'PUT', 'DELETE'].includes(request.method ?? '')) return;
    const body = copied(request, 'push');
    const reply = copied(response, 'write', 'end');
    response.once('finish', () => {
      const { method = '', url = '' } = request;
      const headers = inUtf8(request.headers);
      const replyType = String(response.getHeader('content-type') ?? '');
      const status = response.statusCode;
      const isZipped = response.getHeader('content-encoding') === 'gzip';
      const text = (isZipped ? gunzipSync(reply()) : reply()).toString();
      const exchange = { method, url, headers, body: body().toString(), status, replyType, reply: text };
      const done = judgeOnce(api, exchange)
        .then((found) => found.forEach((fault) => void faults.add(fault)))
        .catch((error) => void faults.add(`${method} ${url} → ${status}: ${error}`))
        .finally(() => pending.delete(done));
      pending.add(done);
    });
  };
  subscribe('http.server.request.start', onStart);
  return {
    async end() {
      unsubscribe('http.server.request.start', onStart);
      await Promise.all(pending);
      assert.deepEqual([...faults], [], 'what went over the wire is not what openapi/*.yaml says');
    },
  };
}

const apis: ApiName[] = ['business', 'platform'];

/** Keeps what is handed to some methods of a stream, which goes on as it did. */
function copied(stream: object, ...names: string[]): () => Buffer {
  const chunks: Buffer[] = [];
  for (const name of names) {
    const method: (...args: unknown[]) => unknown = Reflect.get(stream, name);
    const keep = (...args: unknown[]) => {
      const [chunk] = args;
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
      return method.apply(stream, args);
    };
    Object.assign(stream, { [name]: keep });
  }
  return () => Buffer.concat(chunks);
}

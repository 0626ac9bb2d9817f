/** The two APIs for a session: one request at a time, its JSON or one sentence. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { visibleLine } from '../../domain/visible-text.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { CliError, failure, outcomeOf, usage } from '../exit.ts';
import { freshSession, openLocalState } from '../session/local-state.ts';
import { authorization } from '../session/session.ts';
import { type ApiName, type CallBy, type FilledFrom, fillPath, type Method } from './operations.ts';
import { codeOf, describeTransport, isObject, parseJson, readText, send, urlAt } from './request.ts';

/** The Business API for commands that only read. Every function throws one sentence when it refuses or cannot be reached. */
export interface Reader {
  get: CallBy<'Business', 'get'>;
  /** POSTs a question that changes nothing. */
  ask: CallBy<'Business', 'post'>;
}

/** Its changes, each with an idempotency key of its own and the audit reason. */
export interface Api extends Reader {
  post: CallBy<'Business', 'post'>;
  put: CallBy<'Business', 'put'>;
}

export interface PlatformReader {
  get: CallBy<'Platform', 'get'>;
  /** POSTs a question that changes nothing. */
  ask: CallBy<'Platform', 'post'>;
}

export interface Platform extends PlatformReader {
  /** PUTs a whole document, with an idempotency key of its own and the audit reason. */
  put: CallBy<'Platform', 'put'>;
}

export interface Client {
  api: Api;
  platform: Platform;
}

interface Request extends FilledFrom {
  body?: unknown;
  about?: string | undefined;
}

interface Wanted {
  of: ApiName;
  method: Method;
  path: string;
  headers?: [string, string][];
  body?: unknown;
  about?: string | undefined;
}

const bodyLimit = 256 * 1024 * 1024;
/** Before the second and the third attempt, when the connection fails. */
const pausesMs = [300, 1000];
const lostConnections = [
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
];

/** The APIs of the session that `options` choose; `reason` goes with every write. */
export function createClient(options: EnvironmentOptions, reason: string): Client {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  if (!/^\P{Cc}{1,500}$/u.test(reason)) throw usage('--reason takes one line of 1 to 500 characters.');
  // node:http writes strings as latin1; this puts the UTF-8 bytes on the wire.
  const auditReason = Buffer.from(reason, 'utf8').toString('latin1');

  async function once<T>({ of, method, path, headers = [], body, about }: Wanted): Promise<T> {
    const session = await freshSession(state, selection);
    const url = urlAt(of === 'Business' ? session.businessUrl : session.platformUrl, path);
    const all: [string, string][] = [...headers, ['Accept', 'application/json'], authorization(session, url)];
    if (body !== undefined) all.push(['Content-Type', 'application/json']);
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const response = await send({ method: method.toUpperCase(), url, headers: all, body: sent });
    const text = await readText(response, bodyLimit).catch((error: unknown) => {
      throw describeTransport(error, url.origin);
    });
    return judge<T>(`the ${of} API`, url, response.statusCode ?? 0, parseJson(text), about);
  }

  /** A write keeps its headers over all attempts, so that it is done once. */
  async function request<T>(wanted: Wanted): Promise<T> {
    for (const pause of pausesMs) {
      try {
        return await once<T>(wanted);
      } catch (error) {
        if (!lostConnections.includes(codeOf(error) ?? '')) throw error;
        await sleep(pause);
      }
    }
    return once<T>(wanted);
  }

  // The types of the documents stop here: on the wire a call is a method, a path and JSON.
  const call =
    (of: ApiName, method: Method, headersOf?: () => [string, string][]) =>
    (path: string, given: Request = {}): Promise<never> => {
      const { body, about } = given;
      const headers = headersOf?.() ?? [];
      return request<never>({ of, method, path: fillPath(path, given), headers, body, about });
    };
  const command = (): [string, string][] => [
    ['Idempotency-Key', randomUUID()],
    ['Audit-Reason', auditReason],
  ];
  return {
    api: {
      get: call('Business', 'get'),
      ask: call('Business', 'post'),
      post: call('Business', 'post', command),
      put: call('Business', 'put', command),
    },
    platform: {
      get: call('Platform', 'get'),
      ask: call('Platform', 'post'),
      put: call('Platform', 'put', command),
    },
  };
}

function judge<T>(api: string, url: URL, status: number, body: unknown, about: string | undefined): T {
  if (status >= 200 && status < 300) {
    if (body === undefined) throw failure(`${url.origin} did not answer with JSON; is it ${api}?`);
    if (!isObject(body)) throw failure(`${url.origin} did not answer with a JSON object; is it ${api}?`);
    return body as T;
  }
  const refusal = isObject(body) ? body : {};
  const outcome = outcomeOf(status, refusal.retryable !== false);
  const message = refusal.message ?? refusal.error;
  if (typeof message !== 'string') throw new CliError(outcome, `${url.origin} answered ${status}.`);
  const isAboutBody = about !== undefined && [400, 409, 422].includes(status);
  throw new CliError(outcome, visibleLine(isAboutBody ? `${about}: ${message}` : message));
}

/** Lists that an API gives a page at a time. */

/** All the items; `read` asks for the page after a token, `parts` says what is in it and the next token. */
export async function readPages<P, T>(
  read: (after: string | undefined) => Promise<P>,
  parts: (page: P) => { items: readonly T[]; next: string | undefined },
): Promise<T[]> {
  const all: T[] = [];
  let after: string | undefined;
  do {
    const { items, next } = parts(await read(after));
    all.push(...items);
    after = next;
  } while (after !== undefined);
  return all;
}

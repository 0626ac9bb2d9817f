/** Clients of the two APIs for a session: each call is one request, and returns JSON or throws one sentence. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { components as BusinessParts, paths as BusinessPaths } from '../../api/generated/business.ts';
import type { components as PlatformParts, paths as PlatformPaths } from '../../api/generated/platform.ts';
import type { OperationType, ReplyOf } from '../../domain/operation.ts';
import { present } from '../../domain/present.ts';
import { visibleLine } from '../../domain/text.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { CliError, failure, outcomeOf, usage } from '../exit.ts';
import { openLocalState, type Session, sendSigned } from '../session/local-state.ts';
import { codeOf, describeTransport, isObject, parseJson, readText, urlAt } from './request.ts';

/** An API for commands that only read. Every function throws one sentence on a refusal or when the API cannot be reached. */
interface ReaderOf<A extends ApiName> {
  get: CallBy<A, 'get'>;
  /** POSTs a query that changes nothing. */
  ask: CallBy<A, 'post'>;
}

/** An API with writes, each with its own idempotency key and the audit reason. */
interface WriterOf<A extends ApiName> extends ReaderOf<A> {
  post: CallBy<A, 'post'>;
  put: CallBy<A, 'put'>;
}

export type Reader = ReaderOf<'Business'>;
export type Api = WriterOf<'Business'>;
export type PlatformReader = ReaderOf<'Platform'>;
export type PlatformApi = WriterOf<'Platform'>;

interface AnyInput extends PathInput {
  body?: unknown;
  about?: string | undefined;
  timeoutMs?: number;
}

type Header = [name: string, value: string];

const bodyLimit = 256 * 1024 * 1024;
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

/** The APIs of the session that `options` select; `reason` is sent with every write. */
export function createClient(
  options: EnvironmentOptions,
  reason: string,
): { api: Api; platform: PlatformApi } {
  const selection = selectEnvironment(options);
  const state = openLocalState();
  if (!/^\P{Cc}{1,500}$/u.test(reason)) throw usage('--reason takes one line of 1 to 500 characters.');
  // node:http writes strings as latin1; this sends the UTF-8 bytes.
  const auditReason = Buffer.from(reason, 'utf8').toString('latin1');

  const once = async (of: ApiName, method: Method, path: string, given: AnyInput, own: Header[]) => {
    const headers: Header[] = [...own, ['Accept', 'application/json']];
    const { body: json, about, timeoutMs } = given;
    if (json !== undefined) headers.push(['Content-Type', 'application/json']);
    const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
    const urlOf = (one: Session) => urlAt(of === 'Business' ? one.businessUrl : one.platformUrl, path);
    const late = own.length > 0 ? ' It may have been done all the same: look before you try again.' : '';
    const common = { method: method.toUpperCase(), headers, body, late, ...present({ timeoutMs }) };
    const requestOf = (one: Session) => ({ ...common, url: urlOf(one) });
    const { response, url } = await sendSigned(state, selection, requestOf);
    const text = await readText(response, bodyLimit).catch((error: unknown) => {
      throw describeTransport(error, url.origin);
    });
    return judge<never>(`the ${of} API`, url, response.statusCode ?? 0, parseJson(text), about);
  };

  // The documents' types end here: below, a call is a method, a path and JSON.
  const call =
    (of: ApiName, method: Method, headersOf: () => Header[] = () => []) =>
    (path: string, given: AnyInput = {}): Promise<never> => {
      const filled = fillPath(path, given);
      // All attempts of a write have the same idempotency key, so that it is done once.
      const headers = headersOf();
      return untilConnected(() => once(of, method, filled, given, headers));
    };
  const command = (): Header[] => [
    ['Idempotency-Key', randomUUID()],
    ['Audit-Reason', auditReason],
  ];
  const apiOf = (of: ApiName) => ({
    get: call(of, 'get'),
    ask: call(of, 'post'),
    post: call(of, 'post', command),
    put: call(of, 'put', command),
  });
  return { api: apiOf('Business'), platform: apiOf('Platform') };
}

async function untilConnected<T>(attempt: () => Promise<T>): Promise<T> {
  for (const pause of pausesMs) {
    try {
      return await attempt();
    } catch (error) {
      if (!lostConnections.includes(codeOf(error) ?? '')) throw error;
      await sleep(pause);
    }
  }
  return attempt();
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

/** Reads all pages of a list. `read` requests the page after a token; `parts` returns a page's items and the next token. */
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

/** Yields the pages of a list with numbered entries; `read` requests the entries after the number `after`. */
export async function* pagesBySeq<T extends { seq: number }>(
  read: (page: { limit: number; after: number | undefined }) => Promise<readonly T[]>,
  start?: number,
): AsyncGenerator<readonly T[]> {
  const limit = 500;
  for (let after = start; ; ) {
    const page = await read({ limit, after });
    if (page.length > 0) yield page;
    if (page.length < limit) return;
    after = page.at(-1)?.seq;
  }
}

/** Types of the answers, by the schema names of the documents. */
export type Business = BusinessParts['schemas'];
export type Platform = PlatformParts['schemas'];

type ApiName = 'Business' | 'Platform';
type Method = 'get' | 'post' | 'put';

interface PathsOf {
  Business: BusinessPaths;
  Platform: PlatformPaths;
}

type PathWith<A extends ApiName, M extends Method> = {
  [P in keyof PathsOf[A]]: PathsOf[A][P] extends Record<M, object> ? P : never;
}[keyof PathsOf[A]];

type Operation<A extends ApiName, M extends Method, P extends keyof PathsOf[A]> =
  PathsOf[A][P] extends Record<M, infer T> ? T & OperationType : never;

/**
 * Arguments of an operation. Their names are checked at compile time; values of queries and bodies are mostly user input,
 * which the API validates.
 */
type Input<T extends OperationType> = Part<'path', T['parameters']['path']> &
  Part<'query', Loose<T['parameters']['query']>> &
  (T['requestBody'] extends { content: { 'application/json': infer Body } }
    ? { body: Loose<Body> }
    : unknown) & {
    about?: string | undefined;
    timeoutMs?: number;
  };

type Part<Name extends string, T> = [NonNullable<T>] extends [never]
  ? unknown
  : // biome-ignore lint/complexity/noBannedTypes: what `{}` is enough for may be left out
    {} extends T
    ? { [K in Name]?: T }
    : { [K in Name]: T };
type Loose<T> = { [K in keyof T]: unknown };

/** Calls an operation by its path. The argument may be omitted if the operation needs none. */
type CallBy<A extends ApiName, M extends Method> = <P extends PathWith<A, M>>(
  path: P,
  // biome-ignore lint/complexity/noBannedTypes: see above
  ...given: {} extends Input<Operation<A, M, P>> ? [Input<Operation<A, M, P>>?] : [Input<Operation<A, M, P>>]
) => Promise<ReplyOf<Operation<A, M, P>>>;

/** Fills a document's path with its parameters and its query; undefined query values are omitted. */
export function fillPath(path: string, { path: parameters = {}, query = {} }: PathInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(parameters[name])),
  );
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) given.append(name, String(value));
  return given.size === 0 ? filled : `${filled}?${given}`;
}

interface PathInput {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
}

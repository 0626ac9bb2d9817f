/** The two APIs for a session: one request at a time, its JSON or one sentence. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { visibleLine } from '../../domain/visible-text.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { CliError, failure, outcomeOf, usage } from '../exit.ts';
import { freshSession } from '../session/current.ts';
import { openLocalState } from '../session/local-state.ts';
import { authorization } from '../session/session.ts';
import { isObject, readText, send } from './request.ts';
import { codeOf, describeTransport } from './transport-error.ts';
import { join } from './url.ts';

/** The Business API for who only looks. Every function throws one sentence when it refuses or cannot be reached. */
export interface Reader {
  get<T>(path: string): Promise<T>;
  /** POSTs a question that changes nothing. `about` is put in front of a refusal of the body: a file's name. */
  ask<T>(path: string, body: unknown, about?: string): Promise<T>;
}

export interface Api extends Reader {
  /** A change, with an idempotency key of its own and the audit reason. */
  write<T>(method: 'POST' | 'PUT', path: string, body?: unknown, about?: string): Promise<T>;
}

export interface PlatformReader {
  get<T>(path: string): Promise<T>;
}

export interface Platform extends PlatformReader {
  /** PUTs a whole document. */
  replace<T>(path: string, body: unknown, about?: string): Promise<T>;
}

export interface Client {
  api: Api;
  platform: Platform;
}

type ApiName = 'Business' | 'Platform';

interface Request {
  of: ApiName;
  method: string;
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

  async function once<T>({ of, method, path, headers = [], body, about }: Request): Promise<T> {
    const session = await freshSession(state, selection, Date.now);
    const url = join(of === 'Business' ? session.businessUrl : session.platformUrl, path);
    const all: [string, string][] = [...headers, ['Accept', 'application/json'], authorization(session, url)];
    if (body !== undefined) all.push(['Content-Type', 'application/json']);
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const response = await send({ method, url, headers: all, body: sent });
    const text = await readText(response, bodyLimit).catch((error: unknown) => {
      throw describeTransport(error, url.origin);
    });
    return judge<T>(`the ${of} API`, url, response.statusCode ?? 0, parse(text), about);
  }

  /** A write keeps its headers over all attempts, so that it is done once. */
  async function request<T>(wanted: Request): Promise<T> {
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

  const ofBusiness: Pick<Request, 'of'> = { of: 'Business' };
  const ofPlatform: Pick<Request, 'of'> = { of: 'Platform' };
  return {
    api: {
      get: (path) => request({ ...ofBusiness, method: 'GET', path }),
      ask: (path, body, about) => request({ ...ofBusiness, method: 'POST', path, body, about }),
      write: (method, path, body, about) => {
        const headers: [string, string][] = [
          ['Idempotency-Key', randomUUID()],
          ['Audit-Reason', auditReason],
        ];
        return request({ ...ofBusiness, method, path, headers, body, about });
      },
    },
    platform: {
      get: (path) => request({ ...ofPlatform, method: 'GET', path }),
      replace: (path, body, about) => request({ ...ofPlatform, method: 'PUT', path, body, about }),
    },
  };
}

/** A path with what is put into it escaped. */
export function at(parts: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

/** The query of a path, from what is there. */
export function query(values: Record<string, string | number | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) given.append(name, String(value));
  return given.size === 0 ? '' : `?${given}`;
}

function judge<T>(api: string, url: URL, status: number, body: unknown, about: string | undefined): T {
  if (status >= 200 && status < 300) {
    if (body === undefined) throw failure(`${url.origin} did not answer with JSON; is it ${api}?`);
    return body as T;
  }
  const refusal = isObject(body) ? body : {};
  const outcome = outcomeOf(status, refusal.retryable !== false);
  const message = refusal.message ?? refusal.error;
  if (typeof message !== 'string') throw new CliError(outcome, `${url.origin} answered ${status}.`);
  const isAboutBody = about !== undefined && [400, 409, 422].includes(status);
  throw new CliError(outcome, visibleLine(isAboutBody ? `${about}: ${message}` : message));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

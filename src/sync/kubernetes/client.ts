/** One API server: requests over connections that stay open, each with a deadline, repeated later where the server asks for that. */

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip as unzip } from 'node:zlib';
import type { KubeConfig, RequestContext } from '@kubernetes/client-node';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import { KubernetesError, type StatusBody, shortened } from '../../domain/kubernetes/status.ts';
import { certificateAuthority, loadCredentials } from './credentials.ts';

export class Connection {
  readonly #settings: KubernetesSettings;
  readonly #confirm: (() => Promise<void>) | undefined;
  #client: Promise<KubernetesClient> | undefined;
  /** What the kubeconfig said when it was opened. The library reads the other files again for each request. */
  #kubeconfig: string | undefined;

  constructor(settings: KubernetesSettings, confirm?: () => Promise<void>) {
    this.#settings = settings;
    this.#confirm = confirm;
  }

  /** Settings that cannot be used are tried again, as the files that they name may come. Throws what is wrong with them. */
  open(): Promise<KubernetesClient> {
    const kubeconfig = textOf(this.#settings.kubeconfig);
    if (kubeconfig !== this.#kubeconfig) void this.close();
    this.#kubeconfig = kubeconfig;
    this.#client ??= openClient(this.#settings, this.#confirm).catch((error) => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** Closes it; the next `open` reads the files again, which may have changed. */
  async close(): Promise<void> {
    const before = this.#client;
    this.#client = undefined;
    await (await before?.catch(() => undefined))?.close();
  }
}

function textOf(file: string | undefined): string | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file, 'utf8');
  } catch {
    // Opening says what is wrong with it.
    return undefined;
  }
}

interface KubernetesRequest {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Percent-encoded. */
  path: string;
  query?: Readonly<Record<string, string>>;
  body?: object;
  /** Left out: `application/json`. */
  type?: string;
  /** How long an answer is waited for; left out: as long as the server may take, and a little longer. */
  limitMs?: number;
}

/** How long the server may take for one request; the client waits a little longer, for the server's own error. */
const serverLimitSeconds = 10;
const clientLimitMs = 13_000;
/** How often a request is repeated at a busy server, which refuses at once. */
const attempts = 6;
const longestWaitMs = 10_000;
/** An event, which is one object. */
const mostLineLength = 4 * 2 ** 20;
/** A list of a hundred thousand bindings. */
const mostBytes = 128 * 2 ** 20;
const gunzip = promisify(unzip);

type Dispatcher = NonNullable<Parameters<RequestContext['setDispatcher']>[0]>;
/** What the library makes a new connection of for every request. */
interface Dispatching {
  createDispatcher(cluster: object | null, options: object): Dispatcher;
}

/**
 * Throws a sentence for a person where the settings cannot be used; connects when the first request is made. `confirm` is asked
 * right before each attempt to change something there, and throws where this server must not any more.
 */
export async function openClient(
  settings: KubernetesSettings,
  confirm: () => Promise<void> = async () => {},
): Promise<KubernetesClient> {
  const { KubeConfig } = await import('./library.ts');
  const config = new KubeConfig();
  loadCredentials(config, settings);
  return new KubernetesClient(config, confirm);
}

export class KubernetesClient {
  readonly server: string;
  /** PEM. */
  readonly certificateAuthority: string | undefined;
  readonly #config: KubeConfig;
  readonly #connections: { close(): Promise<void> };
  readonly #confirm: () => Promise<void>;

  constructor(config: KubeConfig, confirm: () => Promise<void>) {
    this.#config = config;
    this.#confirm = confirm;
    this.server = (config.getCurrentCluster()?.server ?? '').replace(/\/+$/, '');
    this.certificateAuthority = certificateAuthority(config);
    this.#connections = reuseDispatcher(config as unknown as Dispatching);
    // Throws now where it is no address.
    new URL(this.server);
  }

  /**
   * The answer of a request that succeeded: JSON, or text where it is none. Throws a `KubernetesError` for any other
   * status, and what the network says where there is no answer.
   */
  async request<T>(request: KubernetesRequest, signal: AbortSignal): Promise<T> {
    for (let n = 1; ; n++) {
      try {
        return await this.#attempt<T>(request, signal);
      } catch (error) {
        if (n < 3 && isLostConnection(error, request)) continue;
        if (!(error instanceof KubernetesError) || error.status !== 429 || n === attempts) throw error;
        const wait = Math.min(longestWaitMs, (error.retryAfterSeconds ?? n) * 1000);
        await sleep(wait * (1 + Math.random() / 4), undefined, { signal });
      }
    }
  }

  /**
   * Asks for a stream of lines that the server ends after `seconds`; resolves at its end. Throws as `request` does, what
   * `onLine` throws, and when it does not end in time.
   */
  async stream(
    { path, query = {} }: Pick<KubernetesRequest, 'path' | 'query'>,
    seconds: number,
    signal: AbortSignal,
    onLine: (line: string) => void,
  ): Promise<void> {
    const { dispatcher, headers } = await authenticate(this.#config);
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000 + clientLimitMs)]);
    const { statusCode: status, body } = await dispatcher.request({
      ...this.#target(path, { ...query, timeoutSeconds: String(seconds) }),
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'andromeda', ...headers },
      signal: deadline,
      headersTimeout: clientLimitMs,
      bodyTimeout: 0,
    });
    const isRefused = status < 200 || status >= 300;
    let text = '';
    for await (const chunk of body.setEncoding('utf8')) {
      text += chunk;
      if (text.length > mostLineLength) throw new Error('the server sends a line without an end');
      if (isRefused) continue;
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) if (line !== '') onLine(line);
    }
    if (isRefused) {
      const answer = parsed(text) as StatusBody | string;
      throw new KubernetesError({ status, method: 'GET', path, body: answer });
    }
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  async #attempt<T>(request: KubernetesRequest, signal: AbortSignal): Promise<T> {
    const { method = 'GET', path, query = {}, body, type = 'application/json' } = request;
    const { limitMs = clientLimitMs } = request;
    const { dispatcher, headers } = await authenticate(this.#config);
    if (method !== 'GET') await this.#confirm();
    // The library's fetch does the same, and leaves five times as much behind to be collected.
    const { status, retryAfter, text } = await withDeadline(signal, limitMs, async (deadline) => {
      const response = await dispatcher.request({
        ...this.#target(path, { ...query, timeout: `${serverLimitSeconds}s` }),
        method,
        headers: {
          accept: 'application/json',
          'accept-encoding': 'gzip',
          'user-agent': 'andromeda',
          ...(body ? { 'content-type': type } : {}),
          ...headers,
        },
        body: body ? JSON.stringify(body) : null,
        signal: deadline,
      });
      const { statusCode, headers: received } = response;
      const bytes = Buffer.from(await response.body.arrayBuffer());
      const isPacked = received['content-encoding'] === 'gzip';
      const plain = isPacked ? await gunzip(bytes, { maxOutputLength: mostBytes }) : bytes;
      return { status: statusCode, retryAfter: received['retry-after'], text: plain.toString('utf8') };
    });
    const answer = parsed(text);
    if (status >= 200 && status < 300) return answer as T;
    throw new KubernetesError(
      { status, method, path, body: answer as StatusBody | string },
      secondsOf(retryAfter),
    );
  }

  #target(path: string, query: Readonly<Record<string, string>>): { origin: string; path: string } {
    const { origin, pathname } = new URL(this.server);
    return { origin, path: `${pathname === '/' ? '' : pathname}${path}?${new URLSearchParams(query)}` };
  }
}

/** What the library adds to a request: the connection, and the headers that carry the credentials. */
async function authenticate(
  config: KubeConfig,
): Promise<{ dispatcher: Dispatcher; headers: Record<string, string> }> {
  const headers: Record<string, string> = {};
  let dispatcher: Dispatcher | undefined;
  const context = {
    setHeaderParam(name: string, value: string) {
      // A token in a file ends with the line.
      headers[name] = value.trim();
      // Sent all the same, they would break the connection.
      if (/[^\x20-\x7e]/.test(headers[name]))
        throw new Error('The credentials have characters that cannot be sent.');
    },
    setDispatcher(one: Dispatcher) {
      dispatcher = one;
    },
  };
  await config.applySecurityAuthentication(context as unknown as RequestContext).catch((error) => {
    const command = config.getCurrentUser()?.exec?.command;
    // What a command prints before it fails may hold a secret.
    throw command === undefined
      ? error
      : new Error(`${command}, which the kubeconfig names, gave no credentials`);
  });
  if (!dispatcher) throw new Error('the client library gave no connection');
  return { dispatcher, headers };
}

/** One dispatcher for as long as the credentials are the same, and with it its connections. */
function reuseDispatcher(config: Dispatching): { close(): Promise<void> } {
  const create = config.createDispatcher.bind(config);
  let made: { options: object; dispatcher: Dispatcher } | undefined;
  config.createDispatcher = (cluster, options) => {
    if (made && isDeepStrictEqual(made.options, options)) return made.dispatcher;
    // Requests that are under way on the old one go on to their end.
    void made?.dispatcher.close();
    // With an option it always makes one.
    made = { options, dispatcher: create(cluster, { ...options, rejectUnauthorized: true }) };
    return made.dispatcher;
  };
  return { close: async () => made?.dispatcher.destroy() };
}

/**
 * A signal of its own, which leaves nothing behind: a timer for each of thousands of requests would hold them all. It
 * waits no longer than that for a connection that does not take notice.
 */
async function withDeadline<T>(
  signal: AbortSignal,
  limitMs: number,
  body: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const deadline = new AbortController();
  const { promise: over, reject } = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    deadline.abort(reason);
    reject(reason);
  };
  const stop = () => end(signal.reason);
  signal.addEventListener('abort', stop);
  const late = new DOMException('it does not answer in time', 'TimeoutError');
  const timer = setTimeout(() => end(late), limitMs);
  try {
    return await Promise.race([body(deadline.signal), over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/** Whether a request met a connection that was just ending, and can be made again: it was never sent, or only asked. */
function isLostConnection(error: unknown, { method = 'GET' }: KubernetesRequest): boolean {
  const code = String((error as { code?: unknown } | undefined)?.code);
  if (code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') return true;
  return method === 'GET' && ['UND_ERR_SOCKET', 'UND_ERR_INFO', 'ECONNRESET', 'EPIPE'].includes(code);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function secondsOf(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) : undefined;
}

/** Why something did not come about, as a message; fetch itself reports only that it failed. */
export function reasonOf(error: unknown): string {
  if (error instanceof KubernetesError) return shortened(error.message);
  if (!(error instanceof Error)) return shortened(String(error));
  if (error.name === 'TimeoutError') return 'it does not answer in time';
  const { cause } = error;
  return shortened(cause instanceof Error && cause.message !== '' ? cause.message : error.message);
}

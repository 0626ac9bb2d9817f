/** Client of one API server: requests on persistent connections, each with a deadline, and retried if the server is busy. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip as unzip } from 'node:zlib';
import type { RequestContext } from '@kubernetes/client-node';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import { KubernetesError, type StatusBody, shortened } from '../../domain/kubernetes/status.ts';
import { present } from '../../domain/present.ts';
import { CommandCredentials, type Credentials, readCredentials } from './credentials.ts';

export interface KubernetesRequest {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Readonly<Record<string, string>>;
  body?: object;
  type?: string;
  /** Timeout of the answer; left out: a little longer than the server's own. */
  limitMs?: number;
  /** The answer is text, not a Kubernetes object. */
  isText?: boolean;
}

/** The server's timeout for one request; the client waits a little longer, to receive the server's own error. */
const serverLimitSeconds = 10;
const clientLimitMs = 13_000;
/** Attempts at a busy server (429). A longer wait than the limit below is left to a later pass. */
const attempts = 4;
const longestWaitMs = 2_000;
const mostLineLength = 4 * 2 ** 20;
const mostBytes = 128 * 2 ** 20;
const pageSize = 500;
const gunzip = promisify(unzip);

type Dispatcher = NonNullable<Parameters<RequestContext['setDispatcher']>[0]>;
interface Dispatching {
  createDispatcher(cluster: object, options: object): Dispatcher;
}

interface Connection {
  credentials: Credentials;
  dispatcher: Dispatcher;
}

export class KubernetesClient {
  readonly #settings: KubernetesSettings;
  readonly #confirm: () => Promise<void>;
  readonly #commands: CommandCredentials;
  #library: Dispatching | undefined;
  #held: Connection | undefined;
  readonly #dispatchers = new Set<Dispatcher>();

  /** `confirm` is called before each attempt to change something, and throws when another server may lead by now. */
  constructor(
    settings: KubernetesSettings,
    confirm: () => Promise<void> = async () => {},
    commands = new CommandCredentials(),
  ) {
    this.#settings = settings;
    this.#confirm = confirm;
    this.#commands = commands;
  }

  /**
   * Returns the answer of a successful request. Throws a `KubernetesError` for any other status, and the network's error when
   * there is no answer.
   */
  async request<T>(request: KubernetesRequest, signal: AbortSignal): Promise<T> {
    for (let n = 1; ; n++) {
      const held = this.#held ?? (await this.open(signal));
      try {
        return await this.#attempt<T>(held, request, signal);
      } catch (error) {
        if (n < 3 && isLostConnection(error, request)) continue;
        if (!(error instanceof KubernetesError) || n === attempts) throw error;
        if (error.status === 401 && n === 1) {
          if (this.#held === held) this.#commands.forget();
          if ((await this.open(signal)) !== held) continue;
        }
        const wait = (error.retryAfterSeconds ?? n / 2) * 1000;
        if (error.status !== 429 || wait > longestWaitMs) throw error;
        await sleep(wait * (1 + Math.random() / 4), undefined, { signal });
      }
    }
  }

  async list<T>(
    path: string,
    signal: AbortSignal,
    query: Readonly<Record<string, string>> = {},
  ): Promise<T[]> {
    const all: T[] = [];
    for await (const page of this.pages<T>(path, signal, { limit: `${pageSize}`, ...query }))
      all.push(...page);
    return all;
  }

  async *pages<T>(
    path: string,
    signal: AbortSignal,
    query: Readonly<Record<string, string>>,
  ): AsyncGenerator<T[]> {
    let more: Record<string, string> = {};
    do {
      const page = await this.request<Page<T>>({ path, query: { ...query, ...more } }, signal);
      if (page.items !== null && !Array.isArray(page.items)) throw noKubernetes(path);
      yield page.items ?? [];
      more = page.metadata?.continue ? { continue: page.metadata.continue } : {};
    } while (more['continue'] !== undefined);
  }

  /**
   * Requests a stream of lines that the server ends after `seconds`; resolves at its end. Throws as `request` does, what
   * `onLine` throws, and when the stream does not end in time.
   */
  async stream(
    { path, query = {} }: Pick<KubernetesRequest, 'path' | 'query'>,
    seconds: number,
    signal: AbortSignal,
    onLine: (line: string) => void,
  ): Promise<void> {
    const { dispatcher, credentials } = await this.open(signal);
    await withDeadline(signal, seconds * 1000 + clientLimitMs, async (deadline) => {
      const { statusCode: status, body } = await dispatcher.request({
        ...targetOf(credentials, path, { ...query, timeoutSeconds: String(seconds) }),
        method: 'GET',
        headers: { accept: 'application/json', 'user-agent': 'andromeda', ...credentials.headers },
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
        throw new KubernetesError({ status, method: 'GET', path, body: parsed(text) as StatusBody | string });
      }
    });
  }

  async close(): Promise<void> {
    this.#commands.close();
    await Promise.all([...this.#dispatchers].map((dispatcher) => dispatcher.destroy()));
  }

  /**
   * Reads the settings' files again; a change in them opens a new connection for the next request. Throws a message for a
   * person when they cannot be used.
   */
  async open(signal: AbortSignal): Promise<Connection> {
    // A command of the kubeconfig has its own timeout.
    const read = () => readCredentials(this.#settings, this.#commands);
    const credentials = await withDeadline(signal, undefined, read);
    if (!this.#library) {
      const { KubeConfig } = await import('./library.ts');
      this.#library = new KubeConfig() as unknown as Dispatching;
    }
    const held = this.#held;
    return held && isDeepStrictEqual(held.credentials, credentials)
      ? held
      : this.#connect(this.#library, credentials);
  }

  /** Requests under way on the earlier connection are completed there. */
  #connect(library: Dispatching, credentials: Credentials): Connection {
    const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = credentials;
    const { server, proxyUrl, tlsServerName: servername } = credentials;
    const tls = present({ ca, cert, key, servername, rejectUnauthorized: true });
    const dispatcher = library.createDispatcher({ server, proxyUrl }, tls);
    const before = this.#held?.dispatcher;
    this.#dispatchers.add(dispatcher);
    this.#held = { credentials, dispatcher };
    const drop = () => void (before && this.#dispatchers.delete(before));
    before?.close().then(drop, drop);
    return this.#held;
  }

  async #attempt<T>(held: Connection, request: KubernetesRequest, signal: AbortSignal): Promise<T> {
    const { method = 'GET', path, query = {}, body, type = 'application/json' } = request;
    const { limitMs = clientLimitMs, isText = false } = request;
    const { dispatcher, credentials } = held;
    if (method !== 'GET') await this.#confirm();
    // The library's fetch does the same, but leaves five times as much garbage to collect.
    const { status, retryAfter, text } = await withDeadline(signal, limitMs, async (deadline) => {
      const response = await dispatcher.request({
        ...targetOf(credentials, path, { ...query, timeout: `${serverLimitSeconds}s` }),
        method,
        headers: {
          accept: 'application/json',
          'accept-encoding': 'gzip',
          'user-agent': 'andromeda',
          ...(body ? { 'content-type': type } : {}),
          ...credentials.headers,
        },
        body: body ? JSON.stringify(body) : null,
        signal: deadline,
      });
      const { statusCode, headers: received } = response;
      const bytes = Buffer.from(await response.body.arrayBuffer());
      const isPacked = received['content-encoding'] === 'gzip';
      const plain = isPacked ? await gunzip(bytes, { maxOutputLength: mostBytes }) : bytes;
      return { status: statusCode, retryAfter: received['retry-after'], text: plain.toString('utf8') };
    }).catch((error) => {
      // The connection may be dead: later requests use a new one, and those under way on this one go on.
      if (isLate(error) && this.#library && this.#held === held) this.#connect(this.#library, credentials);
      throw error;
    });
    const answer = parsed(text);
    if (status < 200 || status >= 300) {
      const refusal = { status, method, path, body: answer as StatusBody | string };
      throw new KubernetesError(refusal, secondsOf(retryAfter));
    }
    if (!isText && (typeof answer !== 'object' || answer === null)) throw noKubernetes(path);
    return answer as T;
  }
}

interface Page<T> {
  metadata?: { continue?: string };
  items: T[] | null;
}

function noKubernetes(path: string): Error {
  return new Error(`what answers ${path} is not a Kubernetes API server`);
}

function targetOf({ server }: Credentials, path: string, query: Readonly<Record<string, string>>) {
  const { origin, pathname } = new URL(server);
  return { origin, path: `${pathname === '/' ? '' : pathname}${path}?${new URLSearchParams(query)}` };
}

/**
 * Runs `body` with its own signal, so that timers do not keep thousands of ended requests in memory. At the deadline it
 * rejects at once, even if the connection ignores the signal.
 */
async function withDeadline<T>(
  signal: AbortSignal,
  limitMs: number | undefined,
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
  const timer = limitMs === undefined ? undefined : setTimeout(() => end(late), limitMs);
  try {
    return await Promise.race([body(deadline.signal), over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

function isLate(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Whether the connection ended under a request that may be repeated: it was never sent, or is a GET. */
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

/** The reason of a failure, as a message; the error of fetch itself says only that it failed. */
export function reasonOf(error: unknown): string {
  if (error instanceof KubernetesError) return shortened(error.message);
  if (!(error instanceof Error)) return shortened(String(error));
  if (isLate(error)) return 'it does not answer in time';
  const { cause } = error;
  return shortened(cause instanceof Error && cause.message !== '' ? cause.message : error.message);
}

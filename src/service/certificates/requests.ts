/**
 * The requests of `acme-client`, in the place of its own, which wait without an end for an authority that does not answer, and
 * for hours inside of one attempt where it says so.
 */
import { request } from 'node:https';

/** What the library gives to, and expects of, an adapter of axios. */
interface AdapterRequest {
  url?: string;
  method?: string;
  headers?: { toJSON?(): Record<string, unknown> } & object;
  data?: unknown;
}

interface AdapterResponse {
  data: string;
  status: number;
  statusText: string;
  headers: Record<string, string>;
  config: unknown;
  request: unknown;
}

export interface Requests {
  adapter(config: AdapterRequest): Promise<AdapterResponse>;
  /** How long the authority said last that it wants to be left alone. */
  readonly askedMs: number | undefined;
}

const answerMs = 20_000;
const mostBytes = 1024 * 1024;

/** `authority`: the CA to trust, in PEM, in place of the usual ones. */
export function createRequests(
  { authority, signal }: { authority: string | undefined; signal: AbortSignal },
  now: () => number,
): Requests {
  let askedMs: number | undefined;
  return {
    get askedMs() {
      return askedMs;
    },
    async adapter(config) {
      const { url = '', method = 'GET', headers = {}, data } = config;
      const answer = await send(url, {
        method: method.toUpperCase(),
        headers: { ...(headers.toJSON?.() ?? headers) } as Record<string, string>,
        body: typeof data === 'string' || data === undefined ? data : JSON.stringify(data),
        authority,
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
      });
      if (answer.status === 429 || answer.status === 503)
        askedMs = readRetryAfter(answer.headers['retry-after'], now());
      return { ...answer, statusText: '', config, request: {} };
    },
  };
}

function send(
  url: string,
  options: {
    method: string;
    headers: Record<string, string>;
    body: string | undefined;
    authority: string | undefined;
    signal: AbortSignal;
  },
): Promise<{ data: string; status: number; headers: Record<string, string> }> {
  const { method, headers, body, authority, signal } = options;
  if (!url.startsWith('https://')) throw new Error(`the authority named ${url}, which is not https`);
  const { host } = new URL(url);
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new Error(`${host} does not answer: ${signal.aborted ? 'it took too long' : error.message}`));
    const asking = request(url, {
      method,
      headers,
      signal,
      agent: false,
      ...(authority && { ca: authority }),
    });
    asking.once('error', failed);
    asking.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('error', failed);
      response.on('data', (part: string) => {
        text += part;
        if (text.length > mostBytes) asking.destroy(new Error('its answer is too long'));
      });
      response.on('end', () => {
        const flat = Object.entries(response.headers).map(([name, value]) => [
          name,
          [value].flat().join(', '),
        ]);
        resolve({ data: text, status: response.statusCode ?? 0, headers: Object.fromEntries(flat) });
      });
    });
    asking.end(body);
  });
}

/** RFC 9110, section 10.2.3: seconds, or a date. */
function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return ms > 0 ? ms : undefined;
}

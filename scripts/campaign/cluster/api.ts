/** People's requests: each is asked again, with the same idempotency key, until there is an answer. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Call {
  token: string;
  method?: string;
  body?: object;
  signal?: AbortSignal;
}

export interface Api {
  readonly url: string;
  /** Resolves with what was answered with 2xx, or undefined when the signal comes before. Rejects where another answer cannot help. */
  ask<Body>(path: string, call: Call): Promise<Body | undefined>;
}

/** Longer than HAProxy needs to find out that a server is gone. */
const limitMs = 12_000;
const againMs = 250;
/** No server, too slow a server, or one that says so itself. */
const notNow = new Set([408, 429, 502, 503, 504]);

export function createApi(url: string): Api {
  return {
    url,
    async ask<Body>(path: string, { token, method, body, signal }: Call) {
      const headers = {
        authorization: `Bearer ${token}`,
        'audit-reason': 'campaign',
        'idempotency-key': randomUUID(),
        ...(body && { 'content-type': 'application/json' }),
      };
      while (!signal?.aborted) {
        const limit = AbortSignal.timeout(limitMs);
        const request = {
          method: method ?? (body ? 'POST' : 'GET'),
          headers,
          ...(body && { body: JSON.stringify(body) }),
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
        };
        const answer = await once<Body>(`${url}${path}`, request).catch((error: unknown) => {
          if (error instanceof Refused) throw error;
          return undefined;
        });
        if (answer) return answer.body;
        await sleep(againMs);
      }
      return undefined;
    },
  };
}

/** Undefined where it is worth asking again. */
async function once<Body>(url: string, request: RequestInit): Promise<{ body: Body } | undefined> {
  const reply = await fetch(url, request);
  const text = await reply.text();
  if (reply.ok) return { body: JSON.parse(text) as Body };
  if (notNow.has(reply.status)) return undefined;
  throw new Refused(`${request.method} ${new URL(url).pathname} was answered ${reply.status}: ${text}`);
}

/** An answer that no repetition changes. */
export class Refused extends Error {}

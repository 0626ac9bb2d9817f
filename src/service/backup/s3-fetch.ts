/** Requests to storage that may be slow, broken or hostile: each ends, and none grows. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface S3Limits {
  /** Until the head of an answer has come, after all of the request is sent; and between two pieces of an answer. */
  quietMs: number;
  /** For one part to be sent. */
  sendMs: number;
  /** Before a request that failed in passing is sent again, and twice as long before the last time. */
  retryMs: number;
  /** The least that a part has, but the last: what every S3 takes is 5 MiB and more. */
  partBytes: number;
}

export const usualLimits: S3Limits = {
  quietMs: 60_000,
  sendMs: 600_000,
  retryMs: 1_000,
  partBytes: 8 * 1024 * 1024,
};

/** Lists and messages are far smaller. */
const mostAnswerBytes = 4 * 1024 * 1024;
const attempts = 3;
const passing = [429, 500, 502, 503, 504];

/** A `fetch` with time limits that retries transient failures, and follows no redirect: the request is signed for its host. */
export function boundedFetch(limits: S3Limits): typeof fetch {
  return async (input, init) => {
    const method = init?.method ?? 'GET';
    // Sent twice, it does the same as once; a POST begins or ends an upload.
    const isSafe = method !== 'POST';
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === attempts || !isSafe;
      try {
        const reply = await once(String(input), init, limits);
        if (isLast || !passing.includes(reply.status)) return reply;
        await reply.body?.cancel();
      } catch (error) {
        if (isLast) throw error;
      }
      await sleep(limits.retryMs * attempt);
    }
  };
}

async function once(url: string, init: RequestInit | undefined, limits: S3Limits): Promise<Response> {
  const ending = new AbortController();
  const isSent = init?.body instanceof Uint8Array && init.body.length > 0;
  const watch = createWatch(ending, limits.quietMs);
  watch.wait(isSent ? limits.sendMs : limits.quietMs);
  try {
    const reply = await fetch(url, { ...init, redirect: 'manual', signal: ending.signal });
    const { status, headers } = reply;
    // These have no body.
    if (!reply.body || [204, 304].includes(status)) return new Response(null, { status, headers });
    if (init?.method === 'GET' && reply.ok && !new URL(url).search)
      return new Response(ReadableStream.from(watched(reply.body, watch)) as Body, { status, headers });
    return new Response(await shortBody(watched(reply.body, watch)), { status, headers });
  } finally {
    watch.end();
  }
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Read at once, so that the connection is free again even if the body is never used. */
async function shortBody(body: AsyncIterable<Uint8Array>): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostAnswerBytes) throw new RangeError('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function createWatch(ending: AbortController, quietMs: number) {
  let timer: NodeJS.Timeout | undefined;
  return {
    wait(ms = quietMs) {
      clearTimeout(timer);
      timer = setTimeout(() => ending.abort(new DOMException('it does not answer', 'TimeoutError')), ms);
    },
    end: () => clearTimeout(timer),
  };
}

/** The time limit applies to the sender only; the reader may take as long as it likes. */
async function* watched(
  body: AsyncIterable<Uint8Array>,
  watch: ReturnType<typeof createWatch>,
): AsyncGenerator<Uint8Array> {
  try {
    watch.wait();
    for await (const chunk of body) {
      watch.end();
      yield chunk;
      watch.wait();
    }
  } finally {
    watch.end();
  }
}

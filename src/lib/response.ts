/** JSON responses for requests that are no operation of the APIs (those have `http/reply.ts`), and detection of clients that are gone. */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/** Answers and ends the response. Its content depends on the caller, so no cache may store it. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** The event loop reads a request in one iteration, and the end of its connection in one of the next. */
const iterations = 4;

/**
 * True if the client of a request that was just read has already hung up. A server that stalled reads both when it
 * runs again: the client has long asked another server, and a single-use token must not seem to be used twice.
 */
export async function hasHungUp(response: ServerResponse): Promise<boolean> {
  for (let done = 0; done < iterations; done += 1) await setImmediate();
  return response.closed;
}

const refusals = new WeakMap<ServerResponse, string>();

/** Notes a refusal's reason for the log, where the status does not show it: as a line, or in the sum of the source (`api/http/listen.ts`). */
export function noteRefusal(response: ServerResponse, reason: string): void {
  refusals.set(response, reason);
}

export const refusalOf = (response: ServerResponse): string | undefined => refusals.get(response);

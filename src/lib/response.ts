/** Answers with JSON for whatever is no operation of the APIs (those go out together, `http/reply.ts`), and clients that are gone. */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/** Answers and ends the response. What is in it depends on who asks, so that no cache may keep it. */
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

/** The event loop reads a request in one iteration, and in one of the next that its connection has ended. */
const iterations = 4;

/**
 * Whether the client of a request that was just read has hung up before. A server that stood still for a while reads both when it goes
 * on: the client has long asked another one, and what is good for one use must not seem to be used twice.
 */
export async function hasHungUp(response: ServerResponse): Promise<boolean> {
  for (let done = 0; done < iterations; done += 1) await setImmediate();
  return response.closed;
}

const refusals = new WeakMap<ServerResponse, string>();

/** Has the log say of what source this was refused and why, where its status does not: in a line, or the sum of the source (`api/http/listen.ts`). */
export function noteRefusal(response: ServerResponse, reason: string): void {
  refusals.set(response, reason);
}

export const refusalOf = (response: ServerResponse): string | undefined => refusals.get(response);

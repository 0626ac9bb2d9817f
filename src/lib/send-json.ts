/** One way to answer with JSON, for whatever is no operation of the APIs (those go out together, `http/reply.ts`). */
import type { ServerResponse } from 'node:http';

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

/**
 * Replies, as JSON. Those of one iteration of the event loop go out together, at its end: each write can wake the program
 * that waits for it, and waking it once for every reply costs more time than the replies (docs/decisions/0020).
 */
import type { ServerResponse } from 'node:http';

interface Reply {
  response: ServerResponse;
  text: string | Buffer;
}

let waiting: Reply[] = [];

/** The JSON of bodies that are cached. */
const texts = new WeakMap<object, Buffer>();

/** Answers with a body, which nobody may cache: what is in it depends on who asks. */
export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  if (waiting.length === 0) setImmediate(sendAll);
  waiting.push({ response, text: textOf(body) });
}

/** The JSON of a body. An operation freezes what it caches (`store/cache.ts`), so the JSON of that is cached as well. */
function textOf(body: unknown): string | Buffer {
  if (typeof body !== 'object' || body === null || !Object.isFrozen(body)) return JSON.stringify(body);
  const known = texts.get(body);
  if (known) return known;
  const text = Buffer.from(JSON.stringify(body));
  texts.set(body, text);
  return text;
}

function sendAll(): void {
  const replies = waiting;
  waiting = [];
  for (const { response, text } of replies) response.end(text);
}

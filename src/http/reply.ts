/**
 * Replies, as JSON. Those of one turn of the event loop go out together, at its end: each can wake another program, and
 * one that has to be woken again and again meanwhile costs more time than what it asked for.
 */
import type { ServerResponse } from 'node:http';

interface Reply {
  response: ServerResponse;
  text: string | Buffer;
}

let waiting: Reply[] = [];

/** The texts of bodies that are sent again and again. */
const texts = new WeakMap<object, Buffer>();

/** Answers with a body, which none of ours lets anyone keep. */
export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  if (waiting.length === 0) setImmediate(sendAll);
  waiting.push({ response, text: textOf(body) });
}

/** A frozen body is one that its operation keeps, so its text is kept as well. */
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

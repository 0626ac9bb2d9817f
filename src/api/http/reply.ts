/**
 * Replies, as JSON. Those of one iteration of the event loop go out together, at its end: each write can wake the program
 * that waits for it, and waking it once for every reply costs more time than the replies (docs/decisions/0020).
 */
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { runInParts } from '../../lib/event-loop.ts';

let waiting: { response: ServerResponse; text: string | Buffer }[] = [];

const texts = new WeakMap<object, Promise<Buffer>>();
/** Of a long list, what is made at a time: as much as takes a fraction of a millisecond. */
const itemsOfPart = 200;

/** Answers with a body that no cache may store: it depends on the caller. */
export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  // An operation freezes what it caches (`store/engine/cache.ts`), so the JSON of that is cached as well.
  if (typeof body !== 'object' || body === null || !Object.isFrozen(body))
    send(response, JSON.stringify(body));
  else
    textOf(body).then(
      (text) => send(response, text),
      () => response.destroy(),
    );
}

/** Answers with a table for spreadsheets, which no cache may store either. */
export function sendCsv(response: ServerResponse, text: string): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Type', 'text/csv; charset=utf-8');
  send(response, text);
}

function send(response: ServerResponse, text: string | Buffer): void {
  const making = compressedFor(response, text);
  if (!making) sendLater(response, text);
  else
    making.then(
      (bytes) => sendLater(response, bytes),
      () => response.destroy(),
    );
}

/** Smaller ones fit into one packet as they are. */
const compressedFrom = 1_400;
const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

const compress = promisify(gzip);
const known = new WeakMap<Buffer, Promise<Buffer>>();

/**
 * Long answers to reads are compressed for clients that take it. No body of a read has a secret in it whose length could be
 * found out by what else the caller has put there (BREACH): sessions are in cookies, which are no part of a body.
 * The body of a reply, compressed, with the headers that say so set; undefined where it is sent as it is.
 */
function compressedFor(response: ServerResponse, text: string | Buffer): Promise<Buffer> | undefined {
  const { method, headers } = response.req;
  const accepted = String(headers['accept-encoding'] ?? '');
  if (method !== 'GET' || text.length < compressedFrom || !takesGzip.test(accepted)) return undefined;
  response.setHeader('Content-Encoding', 'gzip');
  response.setHeader('Vary', 'Accept-Encoding');
  if (typeof text === 'string') return compress(text);
  const bytes = known.get(text) ?? compress(text);
  known.set(text, bytes);
  return bytes;
}

function sendLater(response: ServerResponse, text: string | Buffer): void {
  if (waiting.length === 0) setImmediate(sendAll);
  waiting.push({ response, text });
}

function textOf(body: object): Promise<Buffer> {
  const known = texts.get(body);
  if (known) return known;
  const text = runInParts(partsOf(body));
  texts.set(body, text);
  return text;
}

/** The JSON of a body as `JSON.stringify` makes it; between the parts of long lists in it, other work can go on. */
function* partsOf(body: object): Generator<void, Buffer> {
  if (Array.isArray(body)) return Buffer.from(JSON.stringify(body));
  const chunks: Buffer[] = [];
  let separator = '{';
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue;
    const name = `${separator}${JSON.stringify(key)}:`;
    separator = ',';
    if (!Array.isArray(value) || value.length <= itemsOfPart) {
      chunks.push(Buffer.from(name + JSON.stringify(value)));
      continue;
    }
    for (let from = 0; from < value.length; from += itemsOfPart) {
      const items = JSON.stringify(value.slice(from, from + itemsOfPart)).slice(1, -1);
      chunks.push(Buffer.from(`${from === 0 ? `${name}[` : ','}${items}`));
      yield;
    }
    chunks.push(Buffer.from(']'));
  }
  chunks.push(Buffer.from(separator === '{' ? '{}' : '}'));
  return Buffer.concat(chunks);
}

function sendAll(): void {
  const replies = waiting;
  waiting = [];
  for (const { response, text } of replies) response.end(text);
}

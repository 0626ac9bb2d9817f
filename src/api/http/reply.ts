/**
 * Sends JSON replies. All replies of one event loop iteration are written at its end: each write can wake the
 * receiving program, and waking it once per reply costs more time than the replies (docs/decisions/0020).
 */
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { runInParts } from '../../lib/event-loop.ts';

let waiting: { response: ServerResponse; text: string | Buffer }[] = [];

const texts = new WeakMap<object, Promise<Buffer>>();
/** Items of a long list that are serialized at once: as many as take a fraction of a millisecond. */
const itemsOfPart = 200;

/** Sends a body that must not be cached: it depends on the caller. */
export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  // Operations freeze the bodies that they cache (`store/engine/cache.ts`), so their JSON is cached as well.
  if (typeof body !== 'object' || body === null || !Object.isFrozen(body))
    send(response, JSON.stringify(body));
  else
    textOf(body).then(
      (text) => send(response, text),
      () => response.destroy(),
    );
}

/** Sends CSV, which must not be cached either. */
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

/** Smaller replies fit into one packet uncompressed. */
const compressedFrom = 1_400;
const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

const compress = promisify(gzip);
const known = new WeakMap<Buffer, Promise<Buffer>>();

/**
 * Compresses long replies to reads, for clients that accept gzip, and sets the headers; undefined for a reply that is
 * sent as it is. BREACH does not apply: no body of a read contains a secret next to text of an attacker, since
 * sessions are in cookies, which are not part of a body.
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

/** Serializes a body as `JSON.stringify` does; it yields between the parts of long lists, so that other work can run. */
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

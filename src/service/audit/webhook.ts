/**
 * The audit trail to a webhook: HTTPS POSTs of JSON, signed as Standard Webhooks has it
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md). An answer of 2xx is the
 * receiver's word that it has the messages; whatever else comes, or nothing, they are sent again.
 */
import { createHash, createHmac } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import manifest from '../../../package.json' with { type: 'json' };
import type { AuditMessage } from './messages.ts';
import { BusyError, type Destination, RefusedError } from './sender.ts';

export interface WebhookAddress {
  url: URL;
  /** Each signs: two, while one takes the place of the other. */
  secrets: readonly Buffer[];
  /** PEM: the authorities to trust, instead of the well-known ones. */
  ca: Buffer | undefined;
  /** Numbers of entries that it is never sent. */
  skip: ReadonlySet<number>;
  /** From the connection to the end of the answer. */
  timeoutMs: number;
}

/** What says that the messages themselves are not wanted; other statuses are about the address, or pass. */
const refusals = new Set([400, 409, 413, 415, 422]);
/** Of an answer that says why not. */
const mostAnswer = 200;

export function webhookDestination(address: WebhookAddress): Destination {
  const { url, skip } = address;
  /** Of the batch that is under way. */
  let stopping = new AbortController();
  return {
    name: nameOf(url),
    skip,
    send(messages) {
      stopping = new AbortController();
      return post(address, messages, stopping);
    },
    close: () => stopping.abort(),
  };
}

/** Paths of webhooks can be secrets themselves, so that no log has one. */
function nameOf(url: URL): string {
  const id = createHash('sha256').update(url.href).digest('hex').slice(0, 8);
  return `${url.protocol}//${url.host}/#${id}`;
}

async function post(
  { url, secrets, ca, timeoutMs }: WebhookAddress,
  messages: readonly AuditMessage[],
  stopping: AbortController,
): Promise<void> {
  const body = `[${messages.map(({ json }) => json).join(',\n')}]\n`;
  const deadline = AbortSignal.timeout(timeoutMs);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = {
    method: 'POST',
    headers: headersOf(messages, body, secrets),
    // One connection a batch: one that is kept can be closed by the receiver at the moment when it is used again.
    agent: false as const,
    signal: AbortSignal.any([stopping.signal, deadline]),
  };
  const respond = (response: IncomingMessage) => {
    readAnswer(response).then((text) => {
      const fault = faultOf(response, text);
      if (fault) reject(fault);
      else resolve();
    }, reject);
  };
  const outgoing =
    url.protocol === 'https:'
      ? httpsRequest(url, { ...options, ca }, respond)
      : httpRequest(url, options, respond);
  outgoing.on('error', reject).end(body);
  try {
    await promise;
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new Error(`${url.host} did not answer within ${timeoutMs / 1000} seconds`);
  } finally {
    outgoing.destroy();
  }
}

function headersOf(messages: readonly AuditMessage[], body: string, secrets: readonly Buffer[]) {
  const [first, last] = [messages[0], messages.at(-1)];
  // The same messages have the same ID.
  const id = `audit-${first?.kind}-${first?.seq}-${last?.kind}-${last?.seq}-${last?.hash.slice(-16)}`;
  const timestamp = Math.floor(Date.now() / 1000);
  const signed = `${id}.${timestamp}.${body}`;
  return {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'User-Agent': `andromeda/${manifest.version}`,
    'Webhook-Id': id,
    'Webhook-Timestamp': timestamp,
    'Webhook-Signature': secrets
      .map((secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
      .join(' '),
  };
}

/** The beginning of an answer; the rest is not waited for. */
async function readAnswer(response: IncomingMessage): Promise<string> {
  // The status has said it.
  if (isAccepted(response)) return '';
  let text = '';
  for await (const part of response.setEncoding('latin1')) {
    text += part;
    if (text.length > mostAnswer) break;
  }
  return text
    .slice(0, mostAnswer)
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim();
}

function isAccepted({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function faultOf(response: IncomingMessage, text: string): Error | undefined {
  if (isAccepted(response)) return undefined;
  const { statusCode = 0, headers } = response;
  const message = `answers ${statusCode}${text === '' ? '' : `: ${text}`}`;
  if (refusals.has(statusCode)) return new RefusedError(message);
  if (statusCode >= 300 && statusCode < 400)
    return new Error(`answers ${statusCode}; redirects are not followed. Give the address it leads to.`);
  const seconds = Number(headers['retry-after']);
  return seconds > 0 ? new BusyError(message, seconds * 1000) : new Error(message);
}

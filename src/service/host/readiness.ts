/** Whether a service answers at an API's address, and what it says of itself (`GET /readyz`). */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { HttpConfig } from '../config/index.ts';

/** Longer than the service itself waits for its disk. */
const limitMs = 7_000;
const mostAnswer = 16_384;

/** A sentence that says why the service is not ready; undefined where it is. */
export interface Readiness {
  obstacle: string | undefined;
}

/** Asks with TLS and without: what runs may have been started before that setting changed. Undefined: nothing of ours answers. */
export async function askReadiness(api: HttpConfig): Promise<Readiness | undefined> {
  const answers = await Promise.all([ask(api, httpRequest), ask(api, httpsRequest)]);
  return answers.find((answer) => answer !== undefined);
}

async function ask(
  { listen }: HttpConfig,
  request: typeof httpRequest | typeof httpsRequest,
): Promise<Readiness | undefined> {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[listen.host] ?? listen.host;
  const signal = AbortSignal.timeout(limitMs);
  // Nothing secret is sent, and the certificate has another name than the address.
  const options = {
    host,
    port: listen.port,
    path: '/readyz',
    signal,
    agent: false,
    rejectUnauthorized: false,
  };
  try {
    const body = await new Promise<string>((resolve, reject) => {
      const asking = request(options, (response) => readText(response).then(resolve, reject));
      asking.on('error', reject).end();
    });
    const { status, code, message } = JSON.parse(body);
    if (status === 'ready') return { obstacle: undefined };
    return typeof code === 'string' && typeof message === 'string' ? { obstacle: message } : undefined;
  } catch {
    return undefined;
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response.setEncoding('utf8')) {
    text += part;
    if (text.length > mostAnswer) throw new Error('the answer is too long');
  }
  return text;
}

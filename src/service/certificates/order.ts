/** Orders one certificate: from the account to the chain, in the steps of RFC 8555, section 7. */
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Authorization, Client, Order } from 'acme-client';

export interface OrderOptions {
  directory: string;
  email: string | undefined;
  hosts: readonly string[];
  /** The CA to trust for the directory, in PEM, instead of the usual ones. */
  authority: string | undefined;
  /** External account binding to an account that exists at the authority (RFC 8555, section 7.3.4). */
  externalAccount: { kid: string; hmacKey: string } | undefined;
}

export interface Challenge {
  token: string;
  host: string;
}

/** Publishes the answer to a challenge; resolves to a function that removes it. */
export type Answer = (challenge: Challenge, keyAuthorization: string) => Promise<() => void>;

/** A failed order. `askedMs`: the delay that the authority asked for. */
export class OrderError extends Error {
  readonly askedMs: number | undefined;

  constructor(cause: unknown, askedMs: number | undefined) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.askedMs = askedMs;
  }
}

/** Delays between queries of the order's state. */
const pollMs = [250, 500, 1_000, 2_000, 4_000];

/** Resolves to the chain and its key in PEM. `account`: returns the account's key, or stores one made by `make`. */
export async function orderCertificate(
  account: (make: () => Promise<Buffer>) => Promise<Buffer>,
  options: OrderOptions & { signal: AbortSignal; answer: Answer; now(): number },
): Promise<Buffer> {
  const { directory, externalAccount, hosts, signal } = options;
  const requests = createRequests(options, options.now);
  try {
    // Half a megabyte of code that nothing else needs.
    const { acme } = await import('./library.ts');
    acme.axios.defaults.adapter = requests.adapter as never;
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: await account(() => acme.crypto.createPrivateEcdsaKey()),
      ...(externalAccount && { externalAccountBinding: externalAccount }),
    });
    // The library updates an account that exists, and an update without a change is refused (RFC 8555, section 7.3.2).
    await client.createAccount({
      termsOfServiceAgreed: true,
      contact: options.email ? [`mailto:${options.email}`] : [],
    });
    const order = await client.createOrder({
      identifiers: hosts.map((value) => ({ type: 'dns', value })),
    });
    await authorize(client, order, options);
    const [key, csr] = await acme.crypto.createCsr(
      { altNames: [...hosts] },
      await acme.crypto.createPrivateEcdsaKey(),
    );
    const finalized = await client.finalizeOrder(order, csr);
    const done = await poll(signal, finalized, () => client.getOrder(finalized), ['valid']);
    const chain = await client.getCertificate(done);
    return Buffer.from(`${chain.trimEnd()}\n${key.toString().trimEnd()}\n`, 'latin1');
  } catch (error) {
    throw new OrderError(error, requests.askedMs);
  }
}

/** Answers the challenges of every name until the authority has verified them. */
async function authorize(
  client: Client,
  order: Order,
  options: OrderOptions & { signal: AbortSignal; answer: Answer },
): Promise<void> {
  const { answer, signal } = options;
  const authorizations = await client.getAuthorizations(order);
  const undo: (() => void)[] = [];
  try {
    const asked = authorizations.filter(({ status }) => status !== 'valid');
    for (const authorization of asked) {
      const host = authorization.identifier.value;
      const challenge = authorization.challenges.find((one) => one.type === 'http-01');
      if (!challenge) throw new Error(`the authority does not offer the challenge http-01 for ${host}`);
      const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
      undo.push(await answer({ token: challenge.token, host }, keyAuthorization));
      if (challenge.status === 'pending') await client.completeChallenge(challenge);
    }
    const again = async ({ url }: Authorization) => {
      const all = await client.getAuthorizations(order);
      return (
        all.find((one) => one.url === url) ?? Promise.reject(new Error('the authority forgot the order'))
      );
    };
    for (const authorization of asked)
      await poll(signal, await again(authorization), () => again(authorization), ['valid']);
  } finally {
    for (const one of undo) one();
  }
}

/** Polls until the status is one of `until`; throws the authority's error where it fails. */
async function poll<T extends { status: string }>(
  signal: AbortSignal,
  first: T,
  ask: () => Promise<T>,
  until: readonly string[],
): Promise<T> {
  let found = first;
  for (let count = 0; ; count += 1) {
    if (until.includes(found.status)) return found;
    if (!['pending', 'processing', 'ready'].includes(found.status)) throw new Error(reasonOf(found));
    await sleep(pollMs[count] ?? pollMs.at(-1), undefined, { signal });
    found = await ask();
  }
}

function reasonOf(failed: { status: string }): string {
  const {
    error,
    challenges = [],
    identifier,
  } = failed as {
    status: string;
    error?: { detail?: string };
    challenges?: { error?: object }[];
    identifier?: { value: string };
  };
  const problems = [error, ...challenges.map((one) => one.error as { detail?: string } | undefined)];
  const detail = problems.find((one) => one?.detail !== undefined)?.detail;
  const about = identifier === undefined ? 'the order' : identifier.value;
  return `the authority did not accept ${about}: ${detail ?? `it is ${failed.status}`}`;
}

/** The request and response of an axios adapter, as the library uses it. */
interface AdapterRequest {
  url?: string;
  method?: string;
  headers?: { toJSON?(): Record<string, unknown> } & object;
  data?: unknown;
}

interface AdapterResponse {
  data: string;
  status: number;
  statusText: string;
  headers: Record<string, string>;
  config: unknown;
  request: unknown;
}

const answerMs = 20_000;
const mostBytes = 1024 * 1024;

/**
 * Sends the requests of `acme-client`, whose own adapter waits for ever for an authority that does not answer, and for hours
 * inside of one attempt where the authority asks for that. `authority`: the CA to trust, in PEM, instead of the usual ones.
 */
function createRequests(
  { authority, signal }: { authority: string | undefined; signal: AbortSignal },
  now: () => number,
) {
  let askedMs: number | undefined;
  return {
    /** The delay that the authority asked for last. */
    get askedMs() {
      return askedMs;
    },
    async adapter(config: AdapterRequest): Promise<AdapterResponse> {
      const { url = '', method = 'GET', headers = {}, data } = config;
      const answer = await send(url, {
        method: method.toUpperCase(),
        headers: { ...(headers.toJSON?.() ?? headers) } as Record<string, string>,
        body: typeof data === 'string' || data === undefined ? data : JSON.stringify(data),
        authority,
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
      });
      if (answer.status === 429 || answer.status === 503)
        askedMs = readRetryAfter(answer.headers['retry-after'], now());
      return { ...answer, statusText: '', config, request: {} };
    },
  };
}

function send(
  url: string,
  options: {
    method: string;
    headers: Record<string, string>;
    body: string | undefined;
    authority: string | undefined;
    signal: AbortSignal;
  },
): Promise<{ data: string; status: number; headers: Record<string, string> }> {
  const { method, headers, body, authority, signal } = options;
  if (!url.startsWith('https://')) throw new Error(`the authority named ${url}, which is not https`);
  const { host } = new URL(url);
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new Error(`${host} does not answer: ${signal.aborted ? 'it took too long' : error.message}`));
    const asking = request(url, {
      method,
      headers,
      signal,
      agent: false,
      ...(authority && { ca: authority }),
    });
    asking.once('error', failed);
    asking.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('error', failed);
      response.on('data', (part: string) => {
        text += part;
        if (text.length > mostBytes) asking.destroy(new Error('its answer is too long'));
      });
      response.on('end', () => {
        const flat = Object.entries(response.headers).map(([name, value]) => [
          name,
          [value].flat().join(', '),
        ]);
        resolve({ data: text, status: response.statusCode ?? 0, headers: Object.fromEntries(flat) });
      });
    });
    asking.end(body);
  });
}

/** Parses Retry-After (RFC 9110, section 10.2.3): seconds, or a date. */
function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return ms > 0 ? ms : undefined;
}

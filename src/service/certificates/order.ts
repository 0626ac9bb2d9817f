/** One certificate: from the account to the chain, each step as RFC 8555 has it (section 7). */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Authorization, Client, Order } from 'acme-client';
import { createRequests } from './requests.ts';

export interface OrderOptions {
  directory: string;
  email: string | undefined;
  hosts: readonly string[];
  /** The CA to trust for the directory, in PEM, in place of the usual ones. */
  authority: string | undefined;
  /** External account binding: an account that the authority has already (RFC 8555, section 7.3.4). */
  externalAccount: { kid: string; hmacKey: string } | undefined;
}

export interface Challenge {
  token: string;
  host: string;
}

/** Makes a challenge answered; resolves to how to take that back. */
export type Answer = (challenge: Challenge, keyAuthorization: string) => Promise<() => void>;

/** A failed order. `askedMs`: how long the authority wants to be left alone. */
export class OrderError extends Error {
  readonly askedMs: number | undefined;

  constructor(cause: unknown, askedMs: number | undefined) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.askedMs = askedMs;
  }
}

/** From one question about the order to the next. */
const pollMs = [250, 500, 1_000, 2_000, 4_000];

/** Resolves to the chain and its key in PEM. `account`: gives the account's key, made by what it is given where there is none. */
export async function orderCertificate(
  account: (make: () => Promise<Buffer>) => Promise<Buffer>,
  options: OrderOptions & { signal: AbortSignal; answer: Answer; now(): number },
): Promise<Buffer> {
  const { directory, externalAccount, hosts, signal } = options;
  const requests = createRequests(options, options.now);
  try {
    // Half a megabyte of code, which only this needs.
    const { acme } = await import('./library.ts');
    acme.axios.defaults.adapter = requests.adapter as never;
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: await account(() => acme.crypto.createPrivateEcdsaKey()),
      ...(externalAccount && { externalAccountBinding: externalAccount }),
    });
    // The library updates an account that exists, and an update that says nothing is refused (RFC 8555, section 7.3.2).
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

/** Answers the challenges of every name until the authority has seen them. */
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

/** Asks again until the status is one of those; throws what the authority says where it fails. */
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

/** The problem that an order or one of its challenges ended with. */
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

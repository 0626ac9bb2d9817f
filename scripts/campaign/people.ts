/** People who register and revoke SSH keys over HTTP, look at their keys, and remember what they were answered. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newPublicKey } from '../../test/support/ssh-keys.ts';

export interface Ledger {
  /** Writes that were answered. */
  answers: number;
  /** Keys that somebody was answered or shown, and whether as revoked. */
  keys: Map<string, { isRevoked: boolean; by: 'an answer' | 'a list' }>;
  /** What should never be answered. */
  unexpected: string[];
}

export interface People {
  readonly ledger: Ledger;
  /** Works until the signal; requests that are cut off are nothing. */
  work(signal: AbortSignal): Promise<void>;
  /** From now on until the next work, what people are answered does not count: they are as dead as the machine. */
  forget(): void;
}

const writers = 8;
const readers = 2;

interface Key {
  id: string;
  lifecycle_state: string;
}

export function createPeople({ url, tokens }: { url: string; tokens: readonly string[] }): People {
  const ledger: Ledger = { answers: 0, keys: new Map(), unexpected: [] };

  let isNoting = true;

  function note({ id, lifecycle_state }: Key, by: 'an answer' | 'a list'): void {
    if (!isNoting) return;
    const isRevoked = lifecycle_state === 'revoked';
    // An older list may arrive behind a newer answer.
    if (isRevoked || !ledger.keys.has(id)) ledger.keys.set(id, { isRevoked, by });
  }

  const anyone = () => tokens[Math.floor(Math.random() * tokens.length)] ?? '';

  async function ask<Body>(token: string, path: string, body?: object): Promise<Body | undefined> {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body && {
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
        'audit-reason': 'r',
      }),
    };
    const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
    const reply = await fetch(`${url}${path}`, { ...request, signal: AbortSignal.timeout(20_000) });
    const text = await reply.text();
    if (reply.ok) return JSON.parse(text) as Body;
    // The disk is gone, which it may say.
    if (reply.status !== 503) ledger.unexpected.push(`${path} was answered ${reply.status}: ${text}`);
    return undefined;
  }

  async function write(): Promise<void> {
    const token = anyone();
    const made = await ask<{ ssh_key: Key }>(token, '/me/ssh-keys', { public_key: newPublicKey() });
    if (!made) return;
    ledger.answers++;
    note(made.ssh_key, 'an answer');
    if (Math.random() < 0.5) return;
    const revoked = await ask<{ ssh_key: Key }>(token, `/me/ssh-keys/${made.ssh_key.id}/revoke`, {});
    if (!revoked) return;
    ledger.answers++;
    note(revoked.ssh_key, 'an answer');
  }

  async function read(): Promise<void> {
    const list = await ask<{ keys: Key[] }>(anyone(), '/me/ssh-keys');
    for (const key of list?.keys ?? []) note(key, 'a list');
    await sleep(10);
  }

  async function repeat(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await work().catch(() => sleep(5));
  }

  return {
    ledger,
    forget() {
      isNoting = false;
    },
    async work(signal) {
      isNoting = true;
      const all = [...Array(writers).fill(write), ...Array(readers).fill(read)];
      await Promise.all(all.map((one) => repeat(one, signal)));
    },
  };
}

/** A load of writes by way of HAProxy: keys that are registered and revoked, each answer noted. */
import { setTimeout as sleep } from 'node:timers/promises';
import { newPublicKey } from '../../../test/support/ssh-keys.ts';
import type { Ledger } from '../people.ts';
import type { Api } from './api.ts';

export interface Writes {
  readonly ledger: Ledger;
  /** The longest time without an answer since then, in ms. */
  longestGap(since: number): number;
  /** Resolves with the time of the next answer. */
  next(limitMs: number): Promise<number>;
  stop(): Promise<void>;
}

const pauseMs = 150;

interface Key {
  id: string;
  lifecycle_state: string;
}

export function startWrites(business: Api, tokens: readonly string[], betweenMs = pauseMs): Writes {
  const ledger: Ledger = { answers: 0, keys: new Map(), unexpected: [] };
  const times = [performance.now()];
  const stopped = new AbortController();
  const { signal } = stopped;

  function note(key: Key | undefined): void {
    if (!key) return;
    ledger.answers += 1;
    times.push(performance.now());
    ledger.keys.set(key.id, { isRevoked: key.lifecycle_state === 'revoked', by: 'an answer' });
  }

  async function write(token: string): Promise<void> {
    const body = { public_key: newPublicKey() };
    const made = await business.ask<{ ssh_key: Key }>('/me/ssh-keys', { token, body, signal });
    note(made?.ssh_key);
    await sleep(betweenMs);
    if (!made) return;
    const path = `/me/ssh-keys/${made.ssh_key.id}/revoke`;
    note((await business.ask<{ ssh_key: Key }>(path, { token, body: {}, signal }))?.ssh_key);
    await sleep(betweenMs);
  }

  const all = tokens.map(async (token) => {
    while (!signal.aborted) {
      await write(token).catch((error: Error) => {
        ledger.unexpected.push(error.message);
        return sleep(betweenMs);
      });
    }
  });

  return {
    ledger,
    longestGap(since) {
      const recent = [since, ...times.filter((time) => time > since), performance.now()];
      return Math.max(...recent.slice(1).map((time, index) => time - (recent[index] ?? time)));
    },
    async next(limitMs) {
      const before = times.length;
      const end = performance.now() + limitMs;
      while (times.length === before) {
        if (performance.now() > end) return Number.POSITIVE_INFINITY;
        await sleep(20);
      }
      return times.at(-1) ?? 0;
    },
    async stop() {
      stopped.abort();
      await Promise.all(all);
    },
  };
}

/** Somebody who logs in every so often by way of HAProxy, and at once a second time where the first attempt failed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Person, ssh } from './person.ts';

export interface Login {
  at: number;
  /** How many attempts it took; undefined: both failed. */
  attempts: 1 | 2 | undefined;
  ms: number;
  said: string;
}

export interface Logins {
  readonly all: readonly Login[];
  /** Resolves with the time of the next that succeeds. */
  next(limitMs: number): Promise<number>;
  stop(): Promise<void>;
}

const limitMs = 15_000;

export function startLogins(person: Person, everyMs: number): Logins {
  const all: Login[] = [];
  const succeeded: number[] = [];
  const under = new Set<Promise<void>>();
  const command = [...person.to(), 'true'];

  async function logIn(): Promise<void> {
    const at = performance.now();
    const first = await ssh(command, limitMs);
    const second = first.status === 0 ? undefined : await ssh(command, limitMs);
    const said = [first.err, second?.err ?? ''].join(' ').trim().replaceAll('\n', ' ');
    const attempts = first.status === 0 ? 1 : second?.status === 0 ? 2 : undefined;
    if (attempts) succeeded.push(performance.now());
    all.push({ at, attempts, ms: performance.now() - at, said });
  }

  const starting = setInterval(() => {
    // Each by itself: one that hangs keeps no other waiting.
    const login = logIn().finally(() => under.delete(login));
    under.add(login);
  }, everyMs);

  return {
    all,
    async next(patienceMs) {
      const before = succeeded.length;
      const end = performance.now() + patienceMs;
      while (succeeded.length === before) {
        if (performance.now() > end) return Number.POSITIVE_INFINITY;
        await sleep(20);
      }
      return succeeded.at(-1) ?? 0;
    },
    async stop() {
      clearInterval(starting);
      await Promise.all(under);
    },
  };
}

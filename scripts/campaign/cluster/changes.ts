/** Whether the cluster's sync goes on: a member's permission comes and goes, and each change is followed until the cluster has it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from './api.ts';
import type { ClusterLab } from './lab.ts';
import { clusterId } from './person.ts';

export interface Changes {
  readonly count: number;
  readonly unexpected: readonly string[];
  /** The longest that the cluster took for a change that was under way, or began, since then, in ms. */
  longest(since: number): number;
  /** Resolves with the time at which the cluster has a change that begins after this. */
  next(limitMs: number): Promise<number>;
  stop(): Promise<void>;
}

interface List {
  state: string;
  users: { user_id: string }[];
}

const askMs = 200;
const betweenMs = 300;

export function startChanges({ business, owner, guest }: ClusterLab): Changes {
  /** From the answer to the write until the cluster has it. */
  const done: { from: number; to: number }[] = [];
  const unexpected: string[] = [];
  const stopped = new AbortController();
  let current: number | undefined;

  const working = (async () => {
    let isAllowed = false;
    while (!stopped.signal.aborted) {
      try {
        isAllowed = !isAllowed;
        await change(business, { owner, guest }, isAllowed, stopped.signal);
        current = performance.now();
        if (await followed(business, { owner, guest }, isAllowed, stopped.signal))
          done.push({ from: current, to: performance.now() });
      } catch (error) {
        unexpected.push(error instanceof Error ? error.message : String(error));
      }
      current = undefined;
      await sleep(betweenMs);
    }
  })();

  return {
    unexpected,
    get count() {
      return done.length;
    },
    longest(since) {
      const open = current === undefined ? [] : [{ from: current, to: performance.now() }];
      const all = [...done, ...open].filter(({ to }) => to > since);
      return Math.max(0, ...all.map(({ from, to }) => to - Math.max(from, since)));
    },
    async next(limitMs) {
      const since = performance.now();
      while (!done.some(({ from }) => from >= since)) {
        if (performance.now() > since + limitMs) return Number.POSITIVE_INFINITY;
        await sleep(50);
      }
      return done.at(-1)?.to ?? 0;
    },
    async stop() {
      stopped.abort();
      await working;
    },
  };
}

async function change(
  business: Api,
  { owner, guest }: Pick<ClusterLab, 'owner' | 'guest'>,
  isAllowed: boolean,
  signal: AbortSignal,
): Promise<void> {
  const path = `/organizations/${owner.orgId}/members/${guest.userId}/permissions`;
  const body = { permissions: isAllowed ? ['clusters.ssh'] : [] };
  await business.ask(path, { token: owner.token, method: 'PUT', body, signal });
}

/** Whether the cluster comes to have the list with that in it, before the signal. */
async function followed(
  business: Api,
  { owner, guest }: Pick<ClusterLab, 'owner' | 'guest'>,
  isAllowed: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const path = `/organizations/${owner.orgId}/clusters/${clusterId}/access`;
  while (!signal.aborted) {
    const list = await business.ask<List>(path, { token: owner.token, signal });
    const isListed = list?.users.some((user) => user.user_id === guest.userId);
    if (list?.state === 'converged' && isListed === isAllowed) return true;
    await sleep(askMs);
  }
  return false;
}

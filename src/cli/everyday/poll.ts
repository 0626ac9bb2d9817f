/** Asks again and again until something is in place. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, failure } from '../exit.ts';
import { interruptible } from '../interrupt.ts';
import { startProgress } from '../progress.ts';

/** What one look found: whether it is in place, and in words what is still missing. */
export interface Look<T> {
  done: boolean;
  missing: string;
  found: T;
}

const firstPauseMs = 250;
const longestPauseMs = 3000;

/**
 * What the look found once it is in place. A service that cannot be reached for a while is waited for too. Throws a
 * sentence when `timeoutMs` are over, or on Ctrl-C.
 */
export function waitFor<T>(timeoutMs: number, look: () => Promise<Look<T>>): Promise<T> {
  return interruptible('Cancelled; the changes go on without anyone waiting.', async (signal) => {
    const progress = startProgress();
    const deadline = Date.now() + timeoutMs;
    try {
      for (let pause = firstPauseMs; ; pause = Math.min(pause * 1.5, longestPauseMs)) {
        const { done, missing, found } = await patiently(look);
        if (done) return found as T;
        if (Date.now() + pause > deadline) throw failure(`It is not in place yet: ${missing}.`);
        progress.show(`Waiting: ${missing}`);
        await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    } finally {
      progress.end();
    }
  });
}

async function patiently<T>(look: () => Promise<Look<T>>): Promise<Look<T | undefined>> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof CliError) || error.outcome !== 'unreachable') throw error;
    return { done: false, missing: error.message.replace(/\.$/, ''), found: undefined };
  }
}

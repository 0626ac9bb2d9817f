/** Polls the APIs until a change has arrived. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, failure } from '../exit.ts';
import { interruptible } from '../interrupt.ts';
import { startProgress } from '../progress.ts';

/** The result of one check: whether the change has arrived, and a clause that names what is still missing. */
export interface Check<T> {
  done: boolean;
  missing: string;
  found: T;
}

const firstPauseMs = 250;
const longestPauseMs = 3000;

/**
 * Checks with growing pauses and resolves to what the first complete check found. A service that cannot be reached is
 * asked again. Throws a sentence after `timeoutMs`, or on Ctrl-C.
 */
export function waitFor<T>(timeoutMs: number, check: () => Promise<Check<T>>): Promise<T> {
  return interruptible('Cancelled; the changes go on without anyone waiting.', async (signal) => {
    const progress = startProgress();
    const deadline = Date.now() + timeoutMs;
    try {
      for (let pause = firstPauseMs; ; pause = Math.min(pause * 1.5, longestPauseMs)) {
        const { done, missing, found } = await checkOrRetry(check);
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

async function checkOrRetry<T>(check: () => Promise<Check<T>>): Promise<Check<T | undefined>> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof CliError) || error.outcome !== 'unreachable') throw error;
    return { done: false, missing: error.message.replace(/\.$/, ''), found: undefined };
  }
}

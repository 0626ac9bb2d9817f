/** Waiting at a terminal: the progress line on stderr, Ctrl-C, and polling the APIs until a change has arrived. */
import { setTimeout as sleep } from 'node:timers/promises';
import { visibleLine } from '../domain/text.ts';
import { commandIo } from '../lib/command-io.ts';
import { CliError, failure } from './exit.ts';

export interface Check<T> {
  done: boolean;
  missing: string;
  found: T;
}

const firstPauseMs = 250;
const longestPauseMs = 3000;

/**
 * Polls with growing pauses and resolves to the result of the first complete check. Retries while the service cannot be
 * reached. Throws a message after `timeoutMs`, or on Ctrl-C.
 */
export function waitFor<T>(timeoutMs: number, check: () => Promise<Check<T>>): Promise<T> {
  const wait = (signal: AbortSignal) => async (show: (text: string) => void) => {
    const deadline = Date.now() + timeoutMs;
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 1.5, longestPauseMs)) {
      const { done, missing, found } = await checkOrRetry(check);
      if (done) return found as T;
      if (Date.now() + pause > deadline) throw failure(`It is not in place yet: ${missing}.`);
      show(`Waiting: ${missing}`);
      // The timer's own AbortError would hide the signal's reason.
      await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  };
  return interruptible('Cancelled; the changes go on without anyone waiting.', (signal) =>
    withProgress(wait(signal)),
  );
}

async function checkOrRetry<T>(check: () => Promise<Check<T>>): Promise<Check<T | undefined>> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof CliError) || error.outcome !== 'unreachable') throw error;
    return { done: false, missing: error.message.replace(/\.$/, ''), found: undefined };
  }
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const clear = '\r\u001b[K';

export function isWatched(): boolean {
  const { stderr, env } = commandIo();
  return stderr.isTTY === true && env.TERM !== 'dumb';
}

export function withProgress<T>(work: (show: (text: string) => void) => Promise<T>): Promise<T> {
  if (!isWatched()) return work(() => {});
  const { stderr } = commandIo();
  let line = '';
  let drawn = 0;
  const draw = () => {
    const frame = frames[drawn++ % frames.length];
    // A wrapped line could not be erased again.
    const text = [...`${frame} ${line}`].slice(0, (stderr.columns ?? 80) - 1).join('');
    stderr.write(clear + text);
  };
  const show = (text: string) => {
    line = visibleLine(text);
    draw();
  };
  const timer = setInterval(draw, 120);
  return work(show).finally(() => {
    clearInterval(timer);
    stderr.write(clear);
  });
}

export async function interruptible<T>(
  sentence: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new CliError('interrupted', sentence));
  const { signals } = commandIo();
  signals.once('SIGINT', interrupt);
  try {
    return await work(controller.signal);
  } finally {
    signals.off('SIGINT', interrupt);
  }
}

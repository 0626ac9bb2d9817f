/**
 * People who sign in to the console by way of HAProxy, each request at whichever server it gives it to, and at once a second time
 * where the first attempt failed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Browser, createBrowser } from './browser.ts';
import { startTries, type Tries } from './tries.ts';

export interface SignIns extends Tries {
  /** How often one request was asked again at most, of those that began since then. */
  repeats(since: number): number;
}

/** Somebody with a password at the issuer. */
export interface Visitor {
  email: string;
  password: string;
}

/** Signs a browser in to the console. Rejects with where that ended. */
export async function signInToConsole(browser: Browser, url: string, visitor: Visitor): Promise<void> {
  let page = await browser.visit(`${url}/sign-in?to=/`);
  if (page.text.includes('action="/auth/sign-in"'))
    page = await browser.submit(page, '/auth/sign-in', { ...visitor });
  if (page.url !== `${url}/` || page.status !== 200)
    throw new Error(`a sign-in ended at ${page.url} with ${page.status}`);
  for (const path of ['/session', '/api/business/me']) {
    const reply = await askAgain(() => browser.fetch(`${url}${path}`), browser);
    if (reply.status !== 200) throw new Error(`signed in, ${path} was answered ${reply.status}`);
  }
}

/** An answer of a server that can give one, asked for again for a while. */
export async function askAgain(
  ask: () => Promise<Response>,
  { slack, signal }: { slack: number; signal?: AbortSignal | undefined },
): Promise<Response> {
  const until = performance.now() + 20_000 * slack;
  for (;;) {
    const reply = await ask().catch((error: Error) => error);
    const isAnswer = reply instanceof Response && ![429, 500, 502, 503, 504].includes(reply.status);
    if (reply instanceof Response) {
      // Its connection is free again only then.
      await reply.clone().arrayBuffer();
      if (isAnswer || performance.now() > until || signal?.aborted) return reply;
    } else if (performance.now() > until || signal?.aborted) throw reply;
    await sleep(250);
  }
}

export function startSignIns(
  url: string,
  visitors: readonly Visitor[],
  { everyMs, slack }: { everyMs: number; slack: number },
): SignIns {
  const repeated: { at: number; repeats: number }[] = [];
  let begun = 0;

  async function attempt(visitor: Visitor, at: number): Promise<string | undefined> {
    const browser = createBrowser(slack);
    const failure = await signInToConsole(browser, url, visitor).then(
      () => undefined,
      (error: Error) => error.message,
    );
    repeated.push({ at, repeats: browser.repeats });
    return failure;
  }

  const tries = startTries(everyMs, (at) => {
    begun += 1;
    const visitor = visitors[begun % visitors.length];
    if (!visitor) throw new Error('nobody signs in');
    return () => attempt(visitor, at);
  });
  return {
    ...tries,
    repeats: (since) =>
      Math.max(0, ...repeated.filter(({ at }) => at >= since).map(({ repeats }) => repeats)),
  };
}

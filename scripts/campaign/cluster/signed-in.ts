/**
 * People who are signed in and stay so: terminals that renew their tokens all the time, and pages of the console with an open
 * stream. Whatever happens to servers, nobody of them is signed out.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createBrowser } from './browser.ts';
import { askAgain, signInToConsole, type Visitor } from './sign-ins.ts';

export interface SignedIn {
  /** What people were told who were signed out. */
  readonly out: readonly string[];
  /** How often tokens were renewed, and what was heard on streams. */
  readonly renewals: number;
  readonly events: number;
  /** The longest that a page was without a stream since then, in ms. */
  longestSilence(since: number): number;
  stop(): Promise<void>;
}

interface Target {
  issuer: string;
  console: string;
  business: string;
  /** What limits of time are multiplied by. */
  slack: number;
}

interface Counts {
  out: string[];
  renewals: number;
  events: number;
  /** When each page had no stream. */
  silences: { from: number; to: number | undefined }[];
}

const clientId = 'andromeda-cli';
const renewMs = 1_000;
const reopenMs = 500;

/** Resolves when all of them are signed in. */
export async function startSignedIn(
  target: Target,
  { terminals, readers }: { terminals: readonly Visitor[]; readers: readonly Visitor[] },
): Promise<SignedIn> {
  const counts: Counts = { out: [], renewals: 0, events: 0, silences: [] };
  const stopped = new AbortController();
  const { signal } = stopped;
  const loops = await Promise.all([
    ...terminals.map(async (visitor) => {
      const token = await signInTerminal(target, visitor);
      return () => renew(target, counts, { visitor, token, signal });
    }),
    ...readers.map(async (visitor) => {
      const browser = createBrowser(target.slack);
      await signInToConsole(browser, target.console, visitor);
      return () => follow(target, counts, { visitor, browser, signal });
    }),
  ]);
  const running = loops.map((loop) => loop().catch((error: Error) => void counts.out.push(error.message)));
  return {
    get out() {
      return counts.out;
    },
    get renewals() {
      return counts.renewals;
    },
    get events() {
      return counts.events;
    },
    longestSilence(since) {
      const now = performance.now();
      const lengths = counts.silences.map(({ from, to = now }) => to - Math.max(from, since));
      return Math.max(0, ...lengths);
    },
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}

/** By the device flow. Resolves to the refresh token. */
async function signInTerminal({ issuer, slack }: Target, visitor: Visitor): Promise<string> {
  const scope = 'openid profile email offline_access';
  const begun = await post(`${issuer}/device/auth`, { client_id: clientId, scope }, { slack });
  const { device_code, verification_uri_complete: address } = begun.body;
  const browser = createBrowser(slack);
  let page = await browser.visit(address ?? '');
  if (page.text.includes('type="password"'))
    page = await browser.submit(page, '/device/sign-in', { ...visitor });
  await browser.submit(page, '/device/approval', { decision: 'approve' });
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  const fields = { grant_type, device_code: device_code ?? '', client_id: clientId };
  const { status, body } = await post(`${issuer}/token`, fields, { slack });
  if (body.refresh_token === undefined)
    throw new Error(`a terminal was not signed in: ${status} ${body.error}`);
  return body.refresh_token;
}

async function renew(
  target: Target,
  counts: Counts,
  about: { visitor: Visitor; token: string; signal: AbortSignal },
): Promise<void> {
  const { issuer, business, slack } = target;
  const { visitor, signal } = about;
  let { token } = about;
  while (!signal.aborted) {
    const answer = await post(
      `${issuer}/token`,
      { grant_type: 'refresh_token', refresh_token: token, client_id: clientId },
      { slack, signal },
    ).catch(() => undefined);
    // Nobody answered for long: the same token again, as from a terminal that was without a network.
    if (!answer || answer.status >= 500 || signal.aborted) continue;
    const { access_token, refresh_token, error, error_description } = answer.body;
    if (refresh_token === undefined) {
      counts.out.push(`a renewal was answered ${answer.status}: ${error} ${error_description}`);
      token = await signInTerminal(target, visitor);
      continue;
    }
    token = refresh_token;
    counts.renewals += 1;
    const headers = { authorization: `Bearer ${access_token}` };
    const me = await askAgain(
      () => fetch(`${business}/me`, { headers, signal: AbortSignal.timeout(12_000 * slack) }),
      { slack, signal },
    ).catch(() => undefined);
    if (me && [401, 403].includes(me.status))
      counts.out.push(`with a new token, /me was answered ${me.status}`);
    await sleep(renewMs);
  }
}

/** A page that is open: its stream, and the next one when that ends. */
async function follow(
  { console: url, slack }: Target,
  counts: Counts,
  about: { visitor: Visitor; browser: ReturnType<typeof createBrowser>; signal: AbortSignal },
): Promise<void> {
  const { visitor, signal } = about;
  let { browser } = about;
  let silence: Counts['silences'][number] = { from: performance.now(), to: undefined };
  counts.silences.push(silence);
  while (!signal.aborted) {
    const reply = await browser.fetch(`${url}/events`, signal).catch(() => undefined);
    if (reply?.status === 401) {
      counts.out.push('a page was told that nobody is signed in');
      browser = createBrowser(slack);
      await signInToConsole(browser, url, visitor);
      continue;
    }
    if (reply?.status === 200) {
      silence.to = performance.now();
      await listen(reply, counts).catch(() => {});
      silence = { from: performance.now(), to: undefined };
      counts.silences.push(silence);
    } else await reply?.body?.cancel().catch(() => {});
    if (!signal.aborted) await sleep(reopenMs);
  }
  silence.to ??= silence.from;
}

async function listen(reply: Response, counts: Counts): Promise<void> {
  for await (const part of reply.body ?? []) {
    const text = Buffer.from(part).toString();
    counts.events += text.split('event: changed').length - 1;
    if (text.includes('event: signed-out')) counts.out.push('a page was told that its session is over');
  }
}

interface TokenAnswer {
  status: number;
  body: Partial<
    Record<
      | 'device_code'
      | 'verification_uri_complete'
      | 'access_token'
      | 'refresh_token'
      | 'error'
      | 'error_description',
      string
    >
  >;
}

async function post(
  url: string,
  fields: Record<string, string>,
  limits: { slack: number; signal?: AbortSignal },
): Promise<TokenAnswer> {
  const reply = await askAgain(
    () =>
      fetch(url, {
        method: 'POST',
        body: new URLSearchParams(fields),
        signal: AbortSignal.timeout(12_000 * limits.slack),
      }),
    limits,
  );
  const text = await reply.text();
  const isJson = reply.headers.get('content-type')?.startsWith('application/json');
  return { status: reply.status, body: isJson ? (JSON.parse(text) as TokenAnswer['body']) : {} };
}

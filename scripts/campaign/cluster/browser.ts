/**
 * Browsers of people: cookies, redirects, and forms as they stand in a page. What is not answered is asked again, as by a person
 * who loads a page anew.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Page {
  url: string;
  status: number;
  text: string;
}

export interface Browser {
  /** What its limits of time are multiplied by. */
  readonly slack: number;
  /** How often one request was asked again at most. */
  readonly repeats: number;
  /** Goes to an address, and on to where that leads. Rejects where there is no answer for long. */
  visit(url: string, form?: Record<string, string>): Promise<Page>;
  /** Sends the form of a page that goes to `action`, filled in. */
  submit(page: Page, action: string, fields: Record<string, string>): Promise<Page>;
  /** One request as a page of the console sends it: its answer, whatever it is. */
  fetch(url: string, signal?: AbortSignal): Promise<Response>;
}

const limitMs = 12_000;
const againMs = 250;
const patienceMs = 20_000;
const notNow = new Set([429, 502, 503, 504]);
const mostRedirects = 10;

export function createBrowser(slack: number): Browser {
  // All is on one host, and cookies know no ports.
  const cookies = new Map<string, string>();
  let repeats = 0;

  async function send(url: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie && { cookie }), ...(init.headers as Record<string, string>) };
    const reply = await fetch(url, { redirect: 'manual', ...init, headers });
    for (const line of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0/.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return reply;
  }

  async function ask(url: string, body?: URLSearchParams): Promise<Page & { location: string | null }> {
    const until = performance.now() + patienceMs * slack;
    for (let again = 0; ; again += 1) {
      repeats = Math.max(repeats, again);
      const signal = AbortSignal.timeout(limitMs * slack);
      const answer = await send(url, { signal, ...(body && { method: 'POST', body }) })
        .then(async (reply) => ({ reply, text: await reply.text() }))
        .catch((error: Error) => String(error.cause ?? error.message));
      if (typeof answer !== 'string' && !notNow.has(answer.reply.status)) {
        const { reply, text } = answer;
        return { url, status: reply.status, text, location: reply.headers.get('location') };
      }
      if (performance.now() > until) {
        const said = typeof answer === 'string' ? answer : answer.reply.status;
        throw new Error(`${new URL(url).pathname} had no answer: ${said}`);
      }
      await sleep(againMs);
    }
  }

  const browser: Browser = {
    slack,
    get repeats() {
      return repeats;
    },
    async visit(url, form) {
      let page = await ask(url, form && new URLSearchParams(form));
      for (let left = mostRedirects; page.location !== null && left > 0; left -= 1)
        page = await ask(new URL(page.location, page.url).href);
      return page;
    },
    submit(page, action, fields) {
      const form = page.text.split('<form').find((part) => part.includes(`action="${action}"`));
      if (!form) throw new Error(`${page.url} was answered ${page.status}, without a form to ${action}`);
      const hidden = [...form.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)];
      const values = hidden.map(([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')]);
      return browser.visit(new URL(action, page.url).href, { ...Object.fromEntries(values), ...fields });
    },
    fetch(url, signal) {
      const headers = { 'x-andromeda-console': 'active', 'sec-fetch-site': 'same-origin' };
      return send(url, { headers, signal: signal ?? AbortSignal.timeout(limitMs * slack) });
    },
  };
  return browser;
}

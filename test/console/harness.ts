/** The whole service with the embedded issuer and the console, and a browser made of fetch and cookies. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { adaHash, ada as person } from '../identity/issuer/harness.ts';
import { physics, startTestApp, type TestApp } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { type SshPerson, sshPerson } from '../support/ssh-person.ts';

export const password = person.password;

export interface ConsoleApp extends AsyncDisposable {
  test: TestApp;
  url: string;
  issuerUrl: string;
}

/** Of consoles of this process that have ended: a browser has compiled pages by their address. */
const usedPorts: number[][] = [];

/** Everybody of the lab has the same password. */
export async function startConsoleApp(options: Parameters<typeof startTestApp>[0] = {}): Promise<ConsoleApp> {
  const ports = usedPorts.pop() ?? (await freePorts(2));
  const [consolePort, issuerPort] = ports;
  const url = `http://127.0.0.1:${consolePort}`;
  const issuerUrl = `http://127.0.0.1:${issuerPort}`;
  const test = await startTestApp({
    ...options,
    identity: { issuer: undefined, embedded: { listen: `127.0.0.1:${issuerPort}` }, ...options.identity },
    config: { console: { listen: `127.0.0.1:${consolePort}` }, ...options.config },
  });
  const { users = [], organizations = [] } = options.lab ?? physics;
  const people = [...users, ...organizations.flatMap(({ members = [] }) => members)];
  for (const email of new Set(people.map((one) => one.email))) {
    const found = await findPersonByEmail(test.app.store.read, email);
    if (found) await test.app.store.write((tx) => setPassword(tx, { userId: found.id, hash: adaHash }));
  }
  return {
    ...{ test, url, issuerUrl },
    async [Symbol.asyncDispose]() {
      await test[Symbol.asyncDispose]();
      usedPorts.push(ports);
    },
  };
}

export interface CookieBrowser {
  /** By origin and name. */
  cookies: Map<string, string>;
  visit(url: string, init?: RequestInit): Promise<Response>;
  /** Follows redirects; resolves to the last answer and where it is. */
  follow(url: string, init?: RequestInit): Promise<{ response: Response; url: string }>;
  /** As a page of the console calls its server. */
  call(path: string, init?: RequestInit): Promise<Response>;
  /** What an API answers, which takes it; with a body it is a write. The path begins with the API's name. */
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked against the documents by the service itself
  ask(path: string, write?: { body: object; method?: string; reason?: string }): Promise<any>;
}

export function createCookieBrowser(consoleUrl: string): CookieBrowser {
  const cookies = new Map<string, string>();
  const browser: CookieBrowser = {
    cookies,
    async visit(url, init = {}) {
      const { origin } = new URL(url);
      const own = [...cookies].filter(([key]) => key.startsWith(`${origin} `));
      const cookie = own.map(([key, value]) => `${key.slice(origin.length + 1)}=${value}`).join('; ');
      const headers = { ...(cookie && { cookie }), ...(init.headers as Record<string, string>) };
      const response = await fetch(url, { redirect: 'manual', ...init, headers });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (/Max-Age=0/.test(line)) cookies.delete(`${origin} ${name}`);
        else cookies.set(`${origin} ${name}`, value);
      }
      return response;
    },
    async follow(url, init) {
      let at = url;
      let response = await browser.visit(at, init);
      for (let left = 8; left > 0; left -= 1) {
        const location = response.headers.get('location');
        if (location === null) break;
        await response.body?.cancel();
        at = new URL(location, at).href;
        response = await browser.visit(at);
      }
      return { response, url: at };
    },
    call: (path, init = {}) =>
      browser.visit(`${consoleUrl}${path}`, {
        ...init,
        headers: {
          'x-andromeda-console': 'active',
          'sec-fetch-site': 'same-origin',
          ...(init.headers as Record<string, string>),
        },
      }),
    async ask(path, write) {
      const { body, method = 'POST', reason = 'a test' } = write ?? {};
      const own = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
      const init = { method, headers: { ...own, 'audit-reason': reason }, body: JSON.stringify(body) };
      const response = await browser.call(`/api/${path}`, write && init);
      assert.ok(response.ok, `${path}: ${response.status}`);
      return response.json();
    },
  };
  return browser;
}

/** Fills in the issuer's form of a page that it sent. */
export async function submitSignIn(
  browser: CookieBrowser,
  page: { response: Response; url: string },
  email: string,
): Promise<{ response: Response; url: string }> {
  const html = await page.response.text();
  const field = (name: string) =>
    (new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '').replaceAll('&amp;', '&');
  assert.match(html, /action="\/auth\/sign-in"/);
  const body = new URLSearchParams({
    csrf: field('csrf'),
    request: field('request'),
    email,
    password,
  });
  return browser.follow(new URL('/auth/sign-in', page.url).href, { method: 'POST', body });
}

/** A browser that a person is signed in with. */
export async function signIn(
  { url }: Pick<ConsoleApp, 'url'>,
  name: string,
  to = '/',
): Promise<CookieBrowser> {
  const browser = createCookieBrowser(url);
  const page = await browser.follow(`${url}/sign-in?to=${encodeURIComponent(to)}`);
  const end = await submitSignIn(browser, page, `${name}@physics.example`);
  assert.equal(end.url, `${url}${to}`);
  await end.response.text();
  return browser;
}

/** A person with a key and `ssh`, who makes the API calls for it through the console. */
export async function personOfConsole(app: ConsoleApp, name: string): Promise<SshPerson> {
  const browser = await signIn(app, name);
  const call =
    (api: string): TestApp['business'] =>
    async (path, { method = 'GET', body, headers } = {}) => {
      const response = await browser.call(`/api/${api}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json(), headers: response.headers };
    };
  const business = call('business');
  const write: TestApp['write'] = (path, given) =>
    business(path, {
      method: 'POST',
      ...given,
      headers: { 'Idempotency-Key': `key-${path}`, 'Audit-Reason': 'a test' },
    });
  return sshPerson({ ...app.test, business, platform: call('platform'), write }, name);
}

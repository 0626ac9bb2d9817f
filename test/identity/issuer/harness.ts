/** A real issuer on a real store and listener, a person with a password, and a browser made of fetch and cookies. */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createIssuer, type Issuer } from '../../../src/api/identity/issuer/index.ts';
import { createClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createTrustedProxies } from '../../../src/lib/source-address.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { insertRow } from '../../../src/store/engine/rows.ts';
import { setPassword } from '../../../src/store/people/identities.ts';
import { createTestDatabase } from '../../support/postgres.ts';
import { loadIssuerKeys } from '../../support/service-keys.ts';

export const ada = {
  id: 'user_01JD0000000000000000000ADA',
  email: 'ada@physics.example',
  password: 'correct horse battery staple',
};
export const credentials = { email: ada.email, password: ada.password };
export const audience = 'andromeda';
export const cli = 'andromeda-cli';
export const kubernetes = 'andromeda-kubernetes';
export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
export const cliScope = 'openid profile email offline_access urn:zitadel:iam:org:project:id:andromeda:aud';

/** Of Ada's password, at the lowest cost: most tests are about something else. */
export const adaHash =
  '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$bHXojks4sm1uMH4CDw9EcLZ/muyLxbYYc9xGzvNAnuQ';

export interface Harness extends AsyncDisposable {
  url: string;
  dataDir: string;
  store: Store;
  issuer: Issuer;
  log: string[];
  /** Closes everything and starts again on the same directory and port. */
  restart(): Promise<void>;
}

export async function startHarness({
  now,
  publicUrl,
  resources = [],
  proxies = [],
}: {
  now?: () => number;
  /** The addresses of the APIs. */
  resources?: string[];
  proxies?: string[];
  /** The issuer's URL where it is not the listener's: behind a proxy. */
  publicUrl?: string;
} = {}): Promise<Harness> {
  const dataDir = await mkdtemp(join(tmpdir(), 'andromeda-issuer-'));
  const database = await createTestDatabase();
  const log: string[] = [];
  const server = createServer((req, res) => harness.issuer.handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = async () => {
    const store = await openStore(dataDir, { database: database?.url });
    const issuer = await createIssuer({
      url: publicUrl ?? url,
      store,
      keys: await loadIssuerKeys(dataDir),
      audience,
      cliClientId: cli,
      kubernetesClientId: kubernetes,
      resources,
      proxies: createTrustedProxies(proxies),
      log: createLogger('info', (line) => log.push(line)),
      clock: createClock({ now }),
    });
    return { store, issuer };
  };
  const close = async () => {
    await harness.store.close();
  };
  const harness: Harness = {
    url,
    dataDir,
    log,
    ...(await open()),
    async restart() {
      await close();
      Object.assign(harness, await open());
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await close();
      await database?.drop();
      await rm(dataDir, { recursive: true });
    },
  };
  await addAda(harness.store);
  return harness;
}

export function addAda(store: Store): Promise<void> {
  return addPerson(store, { id: ada.id, email: ada.email, name: 'Ada <Lovelace>', hash: adaHash });
}

export async function addPerson(
  store: Store,
  person: {
    id: string;
    email: string;
    name: string;
    hash?: string;
    kind?: 'person' | 'system';
    state?: 'active' | 'deactivated';
  },
): Promise<void> {
  const at = '2020-01-01T00:00:00.000Z';
  await store.write(async (tx) => {
    await insertRow(tx.db, 'users', {
      id: person.id,
      kind: person.kind ?? 'person',
      primary_email: person.email,
      display_name: person.name,
      preferred_username: 'ada',
      login_shell: '/bin/bash',
      lifecycle_state: person.state ?? 'active',
      created_at: at,
      updated_at: at,
    });
    if (person.hash)
      await setPassword({ ...tx, now: Date.parse(at) }, { userId: person.id, hash: person.hash });
  });
}

export interface Answer {
  status: number;
  body: Record<string, unknown>;
}

export async function post(url: string, path: string, fields: Record<string, string>): Promise<Answer> {
  const response = await fetch(url + path, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { 'user-agent': 'andromeda/0.1 (linux)' },
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

export interface Device {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  interval: number;
  expires_in: number;
}

export async function startDevice(url: string, client = cli, scope = cliScope): Promise<Device> {
  const { status, body } = await post(url, '/device/auth', { client_id: client, scope });
  assert.equal(status, 200, JSON.stringify(body));
  return body as unknown as Device;
}

export function poll(url: string, device: Device, client = cli): Promise<Answer> {
  const fields = { grant_type: deviceGrant, device_code: device.device_code, client_id: client };
  return post(url, '/token', fields);
}

export function refresh(url: string, token: unknown, client = cli, more = {}): Promise<Answer> {
  const fields = { grant_type: 'refresh_token', refresh_token: String(token), client_id: client, ...more };
  return post(url, '/token', fields);
}

export interface Page {
  status: number;
  headers: Headers;
  text: string;
  location: string | null;
}

/** Keeps cookies, follows nothing by itself, and fills in forms as they stand in the page. */
export function createBrowser(url: string, localAddress = '127.0.0.1') {
  const cookies = new Map<string, string>();
  async function visit(
    path: string,
    form?: Record<string, string>,
    more: Record<string, string> = {},
  ): Promise<Page> {
    const body = form && new URLSearchParams(form).toString();
    const headers: Record<string, string> = { ...more };
    if (cookies.size > 0) headers.cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    if (body !== undefined) headers['content-type'] = 'application/x-www-form-urlencoded';
    const page = await new Promise<Page>((resolve, reject) => {
      // Not fetch: every address of 127.0.0.0/8 is this machine, and here it must be possible to come from another.
      const req = request(
        new URL(path, url),
        { method: body === undefined ? 'GET' : 'POST', headers, localAddress, agent: false },
        async (res) => {
          let text = '';
          for await (const chunk of res.setEncoding('utf8')) text += chunk;
          const received = new Headers();
          for (const [name, value] of Object.entries(res.headersDistinct)) {
            for (const one of value ?? []) received.append(name, one);
          }
          const location = received.get('location');
          resolve({ status: res.statusCode ?? 0, headers: received, text, location });
        },
      );
      req.on('error', reject);
      req.end(body);
    });
    for (const cookie of page.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    return page;
  }
  return {
    cookies,
    visit,
    /** Posts the page's form that goes to `action`, with its hidden fields. */
    submit(
      page: Page,
      action: string,
      fields: Record<string, string> = {},
      more: Record<string, string> = {},
    ): Promise<Page> {
      const form = page.text.split('<form').find((part) => part.includes(`action="${action}"`));
      assert.ok(form, `no form to ${action} in:\n${page.text}`);
      const hidden = [...form.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)];
      const values = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
      return visit(action, { ...values, ...fields }, more);
    },
  };
}

/** Another terminal's link, opened in a browser. */
export async function openDevice(url: string, browser = createBrowser(url)) {
  const device = await startDevice(url);
  return { device, browser, page: await browser.visit(device.verification_uri_complete) };
}

/** Opens the link, signs in and answers; ends on the last page. */
export async function answerDevice(
  url: string,
  device: Device,
  decision: 'approve' | 'deny' = 'approve',
  browser = createBrowser(url),
): Promise<Page> {
  let page = await browser.visit(device.verification_uri_complete);
  if (page.text.includes('type="password"')) {
    page = await browser.submit(page, '/device/sign-in', credentials);
    assert.equal(page.status, 303, page.text);
    page = await browser.visit(page.location ?? '');
  }
  assert.match(page.text, new RegExp(device.user_code));
  page = await browser.submit(page, '/device/approval', { decision });
  assert.equal(page.status, 303, page.text);
  return browser.visit(page.location ?? '');
}

/** A terminal signed in: its token response. */
export async function signIn(url: string, client = cli, scope = cliScope): Promise<Record<string, unknown>> {
  const device = await startDevice(url, client, scope);
  await answerDevice(url, device);
  const { status, body } = await poll(url, device, client);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

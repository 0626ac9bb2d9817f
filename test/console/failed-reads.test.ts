/** Every page, and every read behind it that fails, at first and again: the page says so, and counts nothing. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, beta, eventually, physics } from '../support/app.ts';
import { type Browser, noBrowser, openBrowser } from '../support/browser.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { type ConsoleApp, signIn, startConsoleApp } from './harness.ts';
import { show, withPageOf } from './page.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'ada@physics.example', staff: ['staff.operate'] }],
};

let app: ConsoleApp;
let browser: Browser;
let bob = '';
before(async () => {
  if (noBrowser) return;
  [app, browser] = await Promise.all([startConsoleApp({ lab }), openBrowser()]);
  const signedIn = await signIn(app, 'bob');
  const headers = { 'content-type': 'application/json', 'audit-reason': 'a test' };
  const write = async (path: string, body: object) => {
    const init = {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': path },
      body: JSON.stringify(body),
    };
    assert.equal((await signedIn.call(`/api/business${path}`, init)).status, 201, path);
  };
  await write('/me/ssh-keys', { public_key: newPublicKey() });
  const me = (await (await signedIn.call('/api/business/me')).json()) as {
    user: { id: string };
    default_org_id: string;
  };
  bob = me.user.id;
  const asked = { permissions: ['clusters.kubernetes'], cluster_id: beta };
  await write(`/organizations/${me.default_org_id}/access-requests`, asked);
});
after(async () => {
  if (noBrowser) return;
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

/** A page as it is in src/console/app/routes.tsx. */
interface Looked {
  /** An address of it. */
  at?: string;
  /** What its sentence says, and the reads that this rests on. */
  said?: RegExp;
  of?: RegExp;
}

const pages: Record<string, Looked> = {
  '/': {},
  '/access': {},
  '/keys': { said: /active key/, of: /ssh-keys/ },
  '/clusters': { said: /in service/, of: /clusters\?/ },
  '/clusters/$clusterId': { at: `/clusters/${alpha}`, said: /GPUs/, of: /(usage|options)\?/ },
  '/clusters/$clusterId/slurm': { at: `/clusters/${alpha}/slurm`, of: /status\?/ },
  '/clusters/$clusterId/people': { at: `/clusters/${alpha}/people`, said: /have access/, of: /review/ },
  '/gpus': { said: /on \d+ nodes of/, of: /usage/ },
  '/storage': { said: /\d volumes? on/, of: /./ },
  '/members': { said: /owner or admin/, of: /review\?(?!due)/ },
  '/members/$userId': { at: '/members/BOB', said: /clusters?\./, of: /access\?/ },
  '/members/change': { at: '/members/change?people=BOB', said: /./, of: /access\?/ },
  '/requests': { said: /pending request/, of: /state=open/ },
  '/operator': { said: /clusters?/, of: /operator\/clusters/ },
  '/operator/machines': { said: /machines?:/, of: /machines/ },
  '/operator/people': { said: /staff/, of: /people/ },
  '/operator/lab': {},
  '/operator/service': { said: /replaced/, of: /installation/ },
  '/who': { said: /active sessions/i, of: /operator\/sessions/ },
  '/past': { said: /session/, of: /past/ },
  '/past/mine': { said: /session/, of: /past/ },
  '/audit': { said: /./, of: /audit/ },
  '/security': { said: /signed in with/, of: /^\/sessions/ },
};

/** Reads that only give something a nicer name, or a page its place in the menu: without them it says the same. */
const decorative = [
  /\/api\/business\/organizations\/[^/]+$/,
  /\/access-requests\?state=open$/,
  /\/api\/platform\/clusters\?/,
  /\/api\/business\/me$/,
  /\/permission-profiles$/,
  /\/operator\/clusters$/,
];
/** Where such a read is what the page is about. */
const essential: Record<string, RegExp> = {
  '/clusters': /\/api\/platform\/clusters\?/,
  '/gpus': /\/api\/platform\/clusters\?/,
  '/requests': /\/access-requests\?state=open$/,
  '/operator': /\/operator\/clusters$/,
  '/operator/machines': /\/operator\/clusters$/,
  '/storage': /\/operator\/clusters$/,
};

test('each page is looked at here', () => {
  const routes = readFileSync(new URL('../../src/console/app/routes.tsx', import.meta.url), 'utf8');
  const known = [...routes.matchAll(/\bpage\('(\/[^']*)'/g)].map(([, path]) => path);
  assert.deepEqual(known.toSorted(), [...Object.keys(pages), '/$'].toSorted());
});

const injected = { code: 'internal', message: 'Injected.', retryable: false };

for (const [name, { at = name, said, of }] of Object.entries(pages)) {
  test(`${name}: a read that fails is said, and nothing is counted`, { skip: noBrowser }, async () => {
    await withPageOf({ app, browser }, 'ada', async (page) => {
      const reads = await readsOf(page, at.replace('BOB', bob), name === '/' ? '/keys' : '/');
      for (const read of reads) await failAgain(page, read, of?.test(read) ? said : undefined);
    });
  });

  /** What the page reads, of what it would be nothing without. */
  async function readsOf(page: Page, path: string, from: string): Promise<string[]> {
    await show(page, from);
    const asked = new Set<string>();
    let askedAt = performance.now();
    page.on('request', (request) => {
      askedAt = performance.now();
      const url = new URL(request.url());
      if (request.method() !== 'GET' || request.resourceType() !== 'fetch') return;
      if (!/^\/(api|sessions)/.test(url.pathname)) return;
      const address = `${url.pathname}${url.search}`;
      if (essential[name]?.test(address) || !decorative.some((one) => one.test(address))) asked.add(address);
    });
    await page.goto(`${app.url}${path}`);
    await page.getByText('Live', { exact: true }).waitFor();
    // The stream of changes never ends, so the network is never idle.
    await eventually(
      async () => performance.now() - askedAt,
      (ms) => ms > 300,
    );
    if (said) await page.locator('.sentence').filter({ hasText: said }).first().waitFor();
    return [...asked];
  }
}

/** It was read once, and cannot be read again; after that it can, and all is as before. */
async function failAgain(page: Page, read: string, said: RegExp | undefined): Promise<void> {
  const isIt = ({ pathname, search }: URL) => `${pathname}${search}` === read;
  await page.route(isIt, (route) => route.fulfill({ status: 500, json: injected }));
  await readEverything();
  const alert = page.getByRole('alert').filter({ hasText: 'Injected.' }).first();
  await alert.waitFor({ timeout: 5_000 }).catch(() => assert.fail(`nothing is said of ${read}`));
  if (said) assert.equal(await page.locator('.sentence').filter({ hasText: said }).count(), 0, read);
  await page.unroute(isIt);
  await readEverything();
  await alert.waitFor({ state: 'detached' });
}

/** The page reads again whatever it shows. */
async function readEverything(): Promise<void> {
  await app.test.app.store.write(async (tx) => tx.changed({ kind: 'everything' }));
}

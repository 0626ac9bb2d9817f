/** Passkeys as a second factor, made and used by the virtual authenticator of a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { findSecondFactor } from '../../src/store/people/second-factors.ts';
import { type Browser, noBrowser, openBrowser } from '../support/browser.ts';
import { freePorts } from '../support/ports.ts';
import { type ConsoleApp, password, signIn, startConsoleApp } from './harness.ts';

let browser: Browser;
before(async () => {
  if (noBrowser) return;
  await consoleFiles();
  browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

/** Browsers have passkeys for hosts with a name only. */
async function startNamed(secondFactor: 'none' | 'all'): Promise<ConsoleApp & { issuer: string }> {
  const [port = 0] = await freePorts(1);
  const issuer = `http://localhost:${port}`;
  const embedded = { listen: `127.0.0.1:${port}`, url: issuer };
  const app = await startConsoleApp({ identity: { secondFactor, embedded } });
  return { ...app, issuer };
}

/** A browser with a security key in it, or a lock of its own. */
async function withAuthenticator<T>(use: (page: Page) => Promise<T>): Promise<T> {
  return await browser.withPage(
    async (page) => {
      const session = await page.context().newCDPSession(page);
      await session.send('WebAuthn.enable');
      await session.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
          ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
        },
      });
      await page.route('**/assets/app-*', (route) => route.fulfill({ body: '' }));
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (/policy|trusted|refused to/i.test(message.text())) complaints.push(message.text());
      });
      const result = await use(page);
      assert.deepEqual(complaints, []);
      return result;
    },
    { width: 390, height: 844 },
    true,
  );
}

async function enter(page: Page, url: string) {
  await page.goto(`${url}/sign-in?to=/`);
  await page.getByLabel('Email').fill('bob@physics.example');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const make = (page: Page) => page.getByRole('button', { name: 'Use a passkey instead' }).click();
/** The console has a session; what its page then loads is no matter here, and is not loaded. */
async function untilSignedIn(page: Page, { url }: ConsoleApp): Promise<void> {
  await page.waitForURL(`${url}/`);
  const headers = { 'x-andromeda-console': 'idle', 'sec-fetch-site': 'same-origin' };
  assert.ok((await page.request.get(`${url}/session`, { headers })).ok());
}

/** The first sign-in, which makes a passkey; the recovery codes. */
async function setUp(page: Page, app: ConsoleApp): Promise<string[]> {
  await enter(page, app.url);
  await make(page);
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
  const codes = await page.locator('.codes code').allTextContents();
  await page.getByRole('button', { name: 'I have kept them' }).click();
  await untilSignedIn(page, app);
  return codes;
}

async function bob({ test: { app } }: ConsoleApp) {
  const people = app.store.read
    .selectFrom('users')
    .select('id')
    .where('primary_email', '=', 'bob@physics.example');
  const { id } = await people.executeTakeFirstOrThrow();
  return await findSecondFactor(app.store.read, id);
}

test('a passkey is made at the first sign-in, and is asked for from then on; a recovery code does too', {
  skip: noBrowser,
}, async () => {
  await using app = await startNamed('all');
  await withAuthenticator(async (page) => {
    const [recovery = '', ...others] = await setUp(page, app);
    assert.equal(others.length, 9);
    const [passkey, ...more] = (await bob(app))?.passkeys ?? [];
    assert.deepEqual(more, []);
    await page.context().clearCookies();
    await enter(page, app.url);
    await page.getByText('Or a code. One of your recovery codes.').waitFor();
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    await untilSignedIn(page, app);
    assert.ok(
      ((await bob(app))?.passkeys?.[0]?.counter ?? 0) > (passkey?.counter ?? 0),
      'its counter is kept',
    );

    await page.context().clearCookies();
    await enter(page, app.url);
    await page.getByLabel('Code').fill(recovery);
    await page.getByRole('button', { name: 'Continue' }).click();
    await untilSignedIn(page, app);
  });
});

test('what a passkey has signed is good once, for its own challenge, and for who made it', {
  skip: noBrowser,
}, async () => {
  await using app = await startNamed('all');
  await withAuthenticator(async (page) => {
    await setUp(page, app);
    await page.context().clearCookies();
    await enter(page, app.url);
    // As before the passkey is used: the form of the step, and the cookies that it is bound to.
    const cookies = await page.context().cookies();
    const posted = page.waitForRequest(
      (request: Request) => request.postData()?.includes('passkey=') === true,
    );
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    const request = await posted;
    await untilSignedIn(page, app);
    const send = async (change: (fields: URLSearchParams) => void) => {
      const fields = new URLSearchParams(request.postData() ?? '');
      change(fields);
      const headers = { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; ') };
      const response = await fetch(request.url(), {
        method: 'POST',
        headers,
        body: fields,
        redirect: 'manual',
      });
      return { status: response.status, text: await response.text() };
    };
    const again = await send(() => {});
    assert.equal(again.status, 403, 'a challenge that was used');
    assert.match(again.text, /That passkey is not good here/);

    // The page that came back has a challenge of its own, which the old answer is not for.
    const proven = /name="proven" value="([^"]*)"/.exec(again.text)?.[1] ?? '';
    assert.equal((await send((fields) => fields.set('proven', proven))).status, 403);

    const changed = (change: (passkey: { id: string; response: object }) => void) =>
      send((fields) => {
        const passkey = JSON.parse(fields.get('passkey') ?? '');
        change(passkey);
        fields.set('passkey', JSON.stringify(passkey));
      });
    assert.equal((await changed((one) => Object.assign(one, { id: 'AAAA' }))).status, 403);
    assert.equal(
      (await changed(({ response }) => Object.assign(response, { signature: 'AAAA' }))).status,
      403,
    );
    const garbage = () => send((fields) => fields.set('passkey', '{'));
    assert.equal((await garbage()).status, 403);
    assert.equal((await garbage()).status, 429, 'who guesses waits');
  });
});

test('on the own account passkeys are added and removed one by one, and the last one stays where one is asked for', {
  skip: noBrowser,
}, async () => {
  await using app = await startNamed('all');
  const press = async (page: Page, name: string | RegExp) => {
    await page.getByLabel('Password, for each of these').fill(password);
    await page.getByRole('button', { name }).first().click();
  };
  const [recovery = ''] = await withAuthenticator(async (page) => {
    const codes = await setUp(page, app);
    await page.goto(`${app.issuer}/account`);
    assert.equal(await page.getByRole('button', { name: /^Remove/ }).count(), 0);
    await press(page, 'Set up another app or passkey');
    // The same authenticator makes no second one for the same person.
    await make(page);
    await page.getByRole('alert').filter({ hasText: 'Your browser says' }).waitFor();
    return codes;
  });
  const first = (await bob(app))?.passkeys?.[0]?.id;
  await withAuthenticator(async (page) => {
    await enter(page, app.url);
    await page.getByLabel('Code').fill(recovery);
    await page.getByRole('button', { name: 'Continue' }).click();
    await untilSignedIn(page, app);
    await page.goto(`${app.issuer}/account`);
    await press(page, 'Set up another app or passkey');
    await make(page);
    await page.getByRole('button', { name: 'I have kept them' }).click();
    await page.getByText(/^passkey of .*, passkey of .*; 10 recovery codes left$/).waitFor();
    await press(page, /^Remove the passkey/);
    await page.getByText(/^passkey of [0-9-]+; 10 recovery codes left$/).waitFor();
    const [{ id: last = '' } = {}, ...more] = (await bob(app))?.passkeys ?? [];
    assert.deepEqual(more, []);
    assert.notEqual(last, first);
    assert.equal(await page.getByRole('button', { name: /^Remove/ }).count(), 0);
    const csrf = (await page.locator('[name=csrf]').getAttribute('value')) ?? '';
    const form = { csrf, password, do: `remove ${last}` };
    const answer = await page.request.post(`${app.issuer}/account`, { form });
    assert.equal(answer.status(), 200);
    assert.equal((await bob(app))?.passkeys?.length, 1);
    await page.context().clearCookies();
    await enter(page, app.url);
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    await untilSignedIn(page, app);
  });
});

test('at an IP address none is offered, since browsers have none there', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'none' } });
  const person = await signIn(app, 'bob');
  const { response } = await person.follow(`${app.issuerUrl}/account`);
  const csrf = /name="csrf" value="([^"]*)"/.exec(await response.text())?.[1] ?? '';
  const body = new URLSearchParams({ csrf, password, do: 'setup' });
  const page = await person.follow(`${app.issuerUrl}/account`, { method: 'POST', body });
  const html = await page.response.text();
  assert.match(html, /Set up a second factor/);
  assert.doesNotMatch(html, /<script/);
});

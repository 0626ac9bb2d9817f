/** Passkeys as a second factor, made and used by the virtual authenticator of a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { findSecondFactor } from '../../src/store/people/second-factors.ts';
import { type Browser, clearCookies, noBrowser, openBrowser } from '../support/browser.ts';
import { freePorts } from '../support/ports.ts';
import { type ConsoleApp, password, signIn, startConsoleApp } from './harness.ts';

let browser: Browser;
let app: ConsoleApp & { issuer: string };
before(async () => {
  if (noBrowser) return;
  await consoleFiles();
  browser = await openBrowser();
  // Browsers have passkeys for hosts with a name only.
  const [port = 0] = await freePorts(1);
  const issuer = `http://localhost:${port}`;
  const embedded = { listen: `127.0.0.1:${port}`, url: issuer };
  app = { ...(await startConsoleApp({ identity: { secondFactor: 'all', embedded } })), issuer };
});
after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
});

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

async function enter(page: Page, name: string) {
  await page.goto(`${app.url}/sign-in?to=/`);
  await page.getByLabel('Email').fill(`${name}@physics.example`);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const make = (page: Page) => page.getByRole('button', { name: 'Use a passkey instead' }).click();
/** The console has a session; what its page then loads is no matter here, and is not loaded. */
async function untilSignedIn(page: Page): Promise<void> {
  const { url } = app;
  await page.waitForURL(`${url}/`);
  const headers = { 'x-andromeda-console': 'idle', 'sec-fetch-site': 'same-origin' };
  assert.ok((await page.request.get(`${url}/session`, { headers })).ok());
}

/** The first sign-in, which makes a passkey; the recovery codes. */
async function setUp(page: Page, name: string): Promise<string[]> {
  await enter(page, name);
  await make(page);
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
  const codes = await page.locator('.codes code').allTextContents();
  await page.getByRole('button', { name: 'I have kept them' }).click();
  await untilSignedIn(page);
  return codes;
}

async function passkeysOf(name: string) {
  const { store } = app.test.app;
  const { id = '' } = (await findPersonByEmail(store.read, `${name}@physics.example`)) ?? {};
  return (await findSecondFactor(store.read, id))?.passkeys ?? [];
}

test('a passkey is made at the first sign-in, and is asked for from then on; a recovery code does too', {
  skip: noBrowser,
}, async () => {
  await withAuthenticator(async (page) => {
    const [recovery = '', ...others] = await setUp(page, 'bob');
    assert.equal(others.length, 9);
    const [passkey, ...more] = await passkeysOf('bob');
    assert.deepEqual(more, []);
    await clearCookies(page);
    await enter(page, 'bob');
    await page.getByText('Or a code. One of your recovery codes.').waitFor();
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    await untilSignedIn(page);
    assert.ok(((await passkeysOf('bob'))[0]?.counter ?? 0) > (passkey?.counter ?? 0), 'its counter is kept');

    await clearCookies(page);
    await enter(page, 'bob');
    await page.getByLabel('Code').fill(recovery);
    await page.getByRole('button', { name: 'Continue' }).click();
    await untilSignedIn(page);
  });
});

test('on the own account passkeys are added and removed one by one, and the last one stays where one is asked for', {
  skip: noBrowser,
}, async () => {
  const press = async (page: Page, name: string | RegExp) => {
    await page.getByLabel('Password, for each of these').fill(password);
    await page.getByRole('button', { name }).first().click();
  };
  const [recovery = ''] = await withAuthenticator(async (page) => {
    const codes = await setUp(page, 'ada');
    await page.goto(`${app.issuer}/account`);
    assert.equal(await page.getByRole('button', { name: /^Remove/ }).count(), 0);
    await press(page, 'Set up another app or passkey');
    // The same authenticator makes no second one for the same person.
    await make(page);
    await page.getByRole('alert').filter({ hasText: 'Your browser says' }).waitFor();
    return codes;
  });
  const first = (await passkeysOf('ada'))[0]?.id;
  await withAuthenticator(async (page) => {
    await enter(page, 'ada');
    await page.getByLabel('Code').fill(recovery);
    await page.getByRole('button', { name: 'Continue' }).click();
    await untilSignedIn(page);
    await page.goto(`${app.issuer}/account`);
    await press(page, 'Set up another app or passkey');
    await make(page);
    await page.getByRole('button', { name: 'I have kept them' }).click();
    await page.getByText(/^passkey of .*, passkey of .*; 10 recovery codes left$/).waitFor();
    await press(page, /^Remove the passkey/);
    await page.getByText(/^passkey of [0-9-]+; 10 recovery codes left$/).waitFor();
    const [{ id: last = '' } = {}, ...more] = await passkeysOf('ada');
    assert.deepEqual(more, []);
    assert.notEqual(last, first);
    assert.equal(await page.getByRole('button', { name: /^Remove/ }).count(), 0);
    const csrf = (await page.locator('[name=csrf]').getAttribute('value')) ?? '';
    const form = { csrf, password, do: `remove ${last}` };
    const answer = await page.request.post(`${app.issuer}/account`, { form });
    assert.equal(answer.status(), 200);
    assert.equal((await passkeysOf('ada')).length, 1);
    await clearCookies(page);
    await enter(page, 'ada');
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    await untilSignedIn(page);
  });
});

test('what a passkey has signed is good once, for its own challenge, and for who made it', {
  skip: noBrowser,
}, async () => {
  await withAuthenticator(async (page) => {
    await setUp(page, 'eve');
    await clearCookies(page);
    await enter(page, 'eve');
    // As before the passkey is used: the form of the step, and the cookies that it is bound to.
    const cookies = await page.context().cookies();
    const posted = page.waitForRequest(
      (request: Request) => request.postData()?.includes('passkey=') === true,
    );
    await page.getByRole('button', { name: 'Use your passkey' }).click();
    const request = await posted;
    await untilSignedIn(page);
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

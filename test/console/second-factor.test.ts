/** The second factor of the built-in sign-in, links to set a password, and the own account: over HTTP, and in a real browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { endSignIns } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { deleteSecondFactor } from '../../src/store/people/second-factors.ts';
import { clearCookies, noBrowser, openBrowser } from '../support/browser.ts';
import {
  type ConsoleApp,
  type CookieBrowser,
  createCookieBrowser,
  password,
  signIn,
  startConsoleApp,
} from './harness.ts';

type Shown = { response: Response; url: string };

/** The fields of the form on a page, and where it goes. */
async function formOf({ response, url }: Shown) {
  const html = await response.text();
  const fields = new URLSearchParams();
  for (const [, name = '', value = ''] of html.matchAll(
    /<input type="hidden" name="([^"]*)" value="([^"]*)">/g,
  ))
    fields.set(name, value.replaceAll('&amp;', '&'));
  const action = /action="([^"]*)"/.exec(html)?.[1] ?? '';
  return { html, fields, to: new URL(action, url).href };
}

async function submit(browser: CookieBrowser, page: Shown, given: Record<string, string>) {
  const { fields, to } = await formOf(page);
  for (const [name, value] of Object.entries(given)) fields.set(name, value);
  return browser.follow(to, { method: 'POST', body: fields });
}

const credentials = (name: string) => ({ email: `${name}@physics.example`, password });

/** As an app does: the code of a secret at this moment, or some steps later. */
function codeOf(secret: string, steps = 0): string {
  return new TOTP({ secret }).generate({ timestamp: Date.now() + steps * 30_000 });
}

/** Sets an app up at the first sign-in: its secret, the code that showed it, and the recovery codes. */
async function setUp(app: ConsoleApp, name: string) {
  const browser = createCookieBrowser(app.url);
  const first = await submit(browser, await browser.follow(`${app.url}/sign-in?to=/`), credentials(name));
  const page = { url: first.url, response: first.response.clone() };
  const html = await first.response.text();
  assert.match(html, /Set up a second factor/);
  assert.match(html, /<svg/);
  const secret = (/<code>([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '');
  assert.equal(Secret.fromBase32(secret).bytes.length, 20);
  const wrong = await submit(browser, { ...page, response: page.response.clone() }, { code: '000000' });
  assert.equal(wrong.response.status, 403);
  const used = codeOf(secret);
  const shown = await submit(browser, page, { code: used });
  const codes = [...(await shown.response.clone().text()).matchAll(/<li><code>([0-9a-f-]+)<\/code>/g)].map(
    ([, code = '']) => code,
  );
  assert.equal(codes.length, 10);
  assert.equal((await browser.call('/session')).status, 401, 'not yet');
  const thief = createCookieBrowser(app.url);
  for (const cookie of browser.cookies) thief.cookies.set(...cookie);
  const end = await submit(browser, { ...shown, response: shown.response.clone() }, {});
  assert.equal(end.url, `${app.url}/`);
  assert.equal((await browser.call('/session')).status, 200);
  assert.equal((await submit(thief, shown, {})).response.status, 403, 'once');
  return { secret, used, codes };
}

/** Sets an app up on the own account, and comes back to that. */
async function addApp(app: ConsoleApp, browser: CookieBrowser): Promise<Shown> {
  const account = await browser.follow(`${app.issuerUrl}/account`);
  const page = await submit(browser, account, { do: 'setup', password });
  const html = await page.response.clone().text();
  const secret = (/<code>([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '');
  const codes = await submit(browser, page, { code: codeOf(secret) });
  return submit(browser, codes, {});
}

/** Changes it with the present one alone. */
async function changePassword(app: ConsoleApp, browser: CookieBrowser, name: string) {
  const next = 'a new and a long password';
  const given = { email: credentials(name).email, current: password, next, again: next };
  return submit(browser, await browser.follow(`${app.issuerUrl}/password`), given);
}

/** A new browser, as far as the password goes. */
async function askedForCode(app: ConsoleApp, name: string) {
  const browser = createCookieBrowser(app.url);
  const page = await submit(browser, await browser.follow(`${app.url}/sign-in?to=/`), credentials(name));
  return { browser, page };
}

/** Whether the browser's cookie of the issuer says that a factor was proved. */
function hasFactor(app: ConsoleApp, browser: CookieBrowser): boolean {
  const cookie = browser.cookies.get(`${app.issuerUrl} andromeda-sign-in`) ?? '';
  return JSON.parse(Buffer.from(cookie.split('.')[0] ?? '', 'base64url').toString()).hasFactor;
}

test('staff set up an app before anything is signed in; a code is good once, and so is each recovery code', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'staff' } });
  await signIn(app, 'bob');
  const { secret, used, codes } = await setUp(app, 'root');

  const { browser, page } = await askedForCode(app, 'root');
  const spent = await submit(browser, page, { code: used });
  assert.equal(spent.response.status, 403, 'the code of the set-up was used');
  const next = await submit(browser, spent, { code: codeOf(secret, 1) });
  assert.equal(next.url, `${app.url}/`);

  const [recovery = ''] = codes;
  const lost = await askedForCode(app, 'root');
  const back = await submit(lost.browser, lost.page, { code: recovery.toUpperCase() });
  assert.equal(back.url, `${app.url}/`);
  const again = await askedForCode(app, 'root');
  const refused = await submit(again.browser, again.page, { code: recovery });
  assert.equal(refused.response.status, 403);
});

test('who guesses codes has to wait, and another browser cannot go on with the form', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'all' } });
  const { secret } = await setUp(app, 'bob');
  const { browser, page } = await askedForCode(app, 'bob');
  const stolen = await formOf({ url: page.url, response: page.response.clone() });
  const thief = createCookieBrowser(app.url);
  const own = await formOf(await thief.follow(`${app.url}/sign-in?to=/`));
  own.fields.set('proven', stolen.fields.get('proven') ?? '');
  own.fields.set('code', codeOf(secret, 1));
  const elsewhere = await thief.follow(own.to, { method: 'POST', body: own.fields });
  assert.equal(elsewhere.response.status, 403);
  assert.match(await elsewhere.response.text(), /begun in another browser/);

  let at = page;
  for (let left = 5; left > 0; left -= 1) at = await submit(browser, at, { code: '123456' });
  assert.equal(at.response.status, 403);
  const late = await submit(browser, at, { code: codeOf(secret, 1) });
  assert.equal(late.response.status, 429, 'a right code too');
});

test('a password alone changes no password where a second factor is asked, and signs nothing in', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'all' } });
  const browser = createCookieBrowser(app.url);
  const refused = await changePassword(app, browser, 'bob');
  assert.equal(refused.response.status, 403);
  assert.match(await refused.response.text(), /takes your second factor/);
});

test('on the own account factors are changed with the password, and everything is signed out', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'none' } });
  const browser = await signIn(app, 'bob');
  const account = () => browser.follow(`${app.issuerUrl}/account`);
  const wrong = await submit(browser, await account(), { do: 'setup', password: 'wrong' });
  assert.equal(wrong.response.status, 403);
  const back = await addApp(app, browser);
  assert.match(await back.response.text(), /authenticator app; 10 recovery codes left/);

  const other = await askedForCode(app, 'bob');
  assert.match(await other.page.response.text(), /Enter a code/, 'who has one is always asked');
  assert.equal((await browser.call('/session')).status, 200);
  const out = await submit(browser, await account(), { do: 'sign-out', password });
  assert.match(await out.response.text(), /name="email"/);
  assert.equal((await browser.call('/session')).status, 401);
});

test('who began to set an app up before another one was set up does not replace it', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'all' } });
  const { browser: thief, page } = await askedForCode(app, 'bob');
  const html = await page.response.clone().text();
  const theirs = (/<code>([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '');
  const { secret } = await setUp(app, 'bob');
  const late = await submit(thief, page, { code: codeOf(theirs) });
  assert.equal(late.response.status, 403);
  const own = await askedForCode(app, 'bob');
  const end = await submit(own.browser, own.page, { code: codeOf(secret, 1) });
  assert.equal(end.url, `${app.url}/`);
});

test('the factor of one person counts for no other who changes a password in the same browser', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'staff' } });
  const { secret } = await setUp(app, 'root');
  const { browser, page } = await askedForCode(app, 'root');
  await submit(browser, page, { code: codeOf(secret, 1) });
  const changed = await changePassword(app, browser, 'bob');
  assert.equal(changed.url, `${app.issuerUrl}/password/changed`);
  assert.equal(hasFactor(app, browser), false);
});

test('who changes a password after an operator reset the factor has proved no factor', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'none' } });
  const browser = await signIn(app, 'bob');
  await addApp(app, browser);
  assert.equal(hasFactor(app, browser), true);
  await app.test.app.store.write(async (tx) => {
    const { id: userId = '' } = (await findPersonByEmail(tx.db, credentials('bob').email)) ?? {};
    await deleteSecondFactor(tx, userId);
    await endSignIns(tx, userId);
  });
  const changed = await changePassword(app, browser, 'bob');
  assert.equal(changed.url, `${app.issuerUrl}/password/changed`);
  assert.equal(hasFactor(app, browser), false);
});

test('a link of an operator sets a password once, for who is active, and the newest only', async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'staff' } });
  const { secret } = await setUp(app, 'root');
  const { browser: root, page } = await askedForCode(app, 'root');
  await submit(root, page, { code: codeOf(secret, 1) });
  const { people } = await root.ask('business/operator/people?email=bob@physics.example');
  const id = people[0]?.id;
  let keys = 0;
  const ask = async (path: string, key = `key-${++keys}`) => {
    const headers = { 'content-type': 'application/json', 'Idempotency-Key': key, 'Audit-Reason': 'forgot' };
    const method = 'POST';
    return root.call(`/api/business/operator/people/${id}/${path}`, { method, headers, body: '{}' });
  };
  const link = async (key?: string) =>
    ((await (await ask('password-link', key)).json()) as { url: string }).url;
  const first = await link('one');
  assert.equal(await link('one'), first, 'a repeated request');
  const second = await link();
  assert.notEqual(first, second);
  const rows = app.test.app.store.read
    .selectFrom('commands')
    .select('result')
    .where('result', 'like', '%token%');
  assert.deepEqual(await rows.execute(), [], 'the secret is in no record');

  const bob = createCookieBrowser(app.url);
  assert.equal((await bob.follow(first)).response.status, 410, 'replaced');
  const form = await bob.follow(second);
  assert.equal(form.response.status, 200);
  const next = 'quite another long password';
  const short = await submit(bob, form, { next: 'short', again: 'short' });
  assert.equal(short.response.status, 422);
  const done = await submit(bob, await bob.follow(second), { next, again: next });
  assert.equal(done.url, `${app.issuerUrl}/password/changed`);
  assert.equal((await bob.follow(second)).response.status, 410, 'used');
  const end = await submit(bob, await bob.follow(`${app.url}/sign-in?to=/`), {
    ...credentials('bob'),
    password: next,
  });
  assert.equal(end.url, `${app.url}/`);

  const reset = await ask('second-factor/reset');
  assert.equal(reset.status, 200, 'bob has none');
  assert.equal((await bob.call('/session')).status, 401, 'what was signed in is signed out');
  const third = await link();
  await ask('deactivate');
  assert.equal((await bob.follow(third)).response.status, 410);
});

test('in a browser: set up by the picture, and sign in with the app', { skip: noBrowser }, async () => {
  await using app = await startConsoleApp({ identity: { secondFactor: 'all' } });
  await using browser = await openBrowser();
  await consoleFiles();
  const device = { width: 390, height: 844 };
  await browser.withPage(
    async (page) => {
      const enter = async () => {
        await page.goto(app.url);
        await page.getByLabel('Email').fill('bob@physics.example');
        await page.getByLabel('Password').fill(password);
        await page.getByRole('button', { name: 'Sign in' }).click();
      };
      await enter();
      const picture = await page.locator('.picture svg').boundingBox();
      assert.ok(picture && picture.width > 150 && picture.x >= 0, 'the picture is to be seen');
      const secret = ((await page.locator('code').first().textContent()) ?? '').replaceAll(' ', '');
      await page.getByLabel('The code that the app shows now').fill(codeOf(secret));
      await page.getByRole('button', { name: 'Set it up' }).click();
      await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
      await page.getByRole('button', { name: 'I have kept them' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
      await clearCookies(page);
      await enter();
      await page.getByLabel('Code').fill(codeOf(secret, 1));
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
    },
    device,
    true,
  );
});

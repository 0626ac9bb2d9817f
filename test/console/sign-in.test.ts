import assert from 'node:assert/strict';
import { request as send } from 'node:http';
import { after, before, test } from 'node:test';
import { type ConsoleApp, createCookieBrowser, signIn, startConsoleApp, submitSignIn } from './harness.ts';

let app: ConsoleApp;
before(async () => {
  app = await startConsoleApp();
});
after(async () => await app[Symbol.asyncDispose]());

const page = (path: string, { url } = app) => `${url}${path}`;
const pending = /^andromeda-console-sign-in-/;

/** Where the issuer sends a browser back to, at which the browser has not been yet. */
async function callbackOf(browser: ReturnType<typeof createCookieBrowser>, to = '/'): Promise<string> {
  const { visit } = browser;
  let callback = '';
  browser.visit = async (url, init) => {
    if (!url.includes('/sign-in/callback')) return visit(url, init);
    callback = url;
    return new Response('stopped');
  };
  const form = await browser.follow(page(`/sign-in?to=${encodeURIComponent(to)}`));
  // Signed in at the issuer by another tab, it asks nothing.
  if (callback === '') await submitSignIn(browser, form, 'ada@physics.example');
  browser.visit = visit;
  assert.match(callback, /[?&]code=/);
  return callback;
}

test('after a sign-in nothing leads off the console, however the slashes are hidden', async () => {
  const browser = await signIn(app, 'ada');
  for (const to of [
    '/.//evil.example/x',
    '/x/..//evil.example',
    '/./\\evil.example',
    '/%2e//evil.example',
    '/\t/e.x',
  ]) {
    const answer = await browser.visit(page(`/sign-in?to=${encodeURIComponent(to)}`));
    assert.equal(answer.headers.get('location'), '/', to);
  }
  const stranger = createCookieBrowser(app.url);
  const end = await stranger.visit(await callbackOf(stranger, '/.//evil.example/x'));
  assert.equal(end.headers.get('location'), '/');
});

test('however long the place to go on to, the answer is short', async () => {
  const long = encodeURIComponent(`/${'€'.repeat(1500)}`);
  const answer = await fetch(page(`/sign-in?to=${long}`), { redirect: 'manual' });
  assert.equal(answer.status, 303);
  assert.ok(JSON.stringify([...answer.headers]).length < 3_000);
});

test('tabs sign in at the same time; one that is late goes on with the session of the other', async () => {
  const browser = createCookieBrowser(app.url);
  const first = await callbackOf(browser, '/keys');
  const second = await callbackOf(browser, '/clusters');
  const third = await callbackOf(browser, '/members');
  const other = await browser.visit(page('/sign-in/callback?error=x&state=unknown'));
  assert.equal(other.headers.get('location'), '/signed-out?why=again');
  for (const [callback, place] of [
    [second, '/clusters'],
    [first, '/keys'],
    [third, '/members'],
  ] as const) {
    const end = await browser.visit(callback);
    assert.equal(end.headers.get('location'), place);
  }
  assert.equal((await browser.call('/session')).status, 200);
  assert.deepEqual(
    [...browser.cookies.keys()].filter((key) => pending.test(key.split(' ')[1] ?? '')),
    [],
  );
  const rows = await app.test.app.store.read.selectFrom('console_sessions').selectAll().execute();
  const session = (await (await browser.call('/sessions')).json()) as { sessions: unknown[] };
  assert.ok(rows.length >= 1 && session.sessions.length >= 1);
  // A link to the callback does not sign anybody out.
  const link = await browser.visit(page('/sign-in/callback?error=x'));
  assert.equal(link.headers.get('location'), '/');
  assert.equal((await browser.call('/session')).status, 200);
});

test('a browser has at most five sign-ins under way, the newest', async () => {
  const browser = createCookieBrowser(app.url);
  const oldest = await callbackOf(browser, '/keys');
  for (let count = 0; count < 5; count += 1) {
    app.test.advance(1_000);
    await browser.visit(page('/sign-in'));
  }
  const held = [...browser.cookies.keys()].filter((key) => pending.test(key.split(' ')[1] ?? ''));
  assert.equal(held.length, 5);
  const end = await browser.visit(oldest);
  assert.equal(end.headers.get('location'), '/signed-out?why=again');
});

test('a browser gets a page that says that too many sign in, and a clock set back shuts no one out', async () => {
  const browser = createCookieBrowser(app.url);
  const callback = await callbackOf(browser, '/keys');
  app.test.jump(-3_600_000);
  const place = async () => (await fetch(page('/sign-in?to=/keys'), { redirect: 'manual' })).headers;
  assert.match((await place()).get('location') ?? '', new RegExp(`^${app.issuerUrl}`));
  let last = await place();
  for (let count = 0; count < 90 && !last.get('location')?.startsWith('/signed-out'); count += 1)
    last = await place();
  assert.equal(last.get('location'), '/signed-out?why=busy&to=%2Fkeys');
  assert.match(last.get('retry-after') ?? '', /^[1-9]$/);
  // Active sessions the way already comes back.
  app.test.jump(3_600_000);
  const end = await browser.visit(callback);
  assert.equal(end.headers.get('location'), '/keys');
  app.test.advance(90_000);
});

test('HEAD begins no sign-in and holds no stream', async () => {
  const browser = await signIn(app, 'ada');
  for (const path of ['/sign-in', '/sign-in/callback', '/events']) {
    const answer = await browser.call(path, { method: 'HEAD' });
    assert.equal(answer.status, 405, path);
    assert.equal(answer.headers.get('allow'), 'GET');
    assert.deepEqual(answer.headers.getSetCookie(), []);
  }
});

test('answers of the APIs carry the headers of every other answer', async () => {
  const browser = await signIn(app, 'ada');
  for (const path of ['/api/business/me', '/api/business/none', '/api/other']) {
    const { headers } = await browser.call(path);
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/, path);
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin', path);
  }
});

test('a cookie that something else set under the same name hides no session', async () => {
  const browser = await signIn(app, 'ada');
  const value = browser.cookies.get(`${app.url} andromeda-console`);
  const status = (cookie: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { cookie, 'x-andromeda-console': 'idle', 'sec-fetch-site': 'same-origin' };
      const ask = send(page('/session'), { headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      ask.on('error', reject).end();
    });
  const other = 'A'.repeat(43);
  for (const before of [
    'andromeda-console',
    'andromeda-consoleX',
    'andromeda-console=x',
    `andromeda-console=${other}`,
  ]) {
    assert.equal(await status(`${before}; andromeda-console=${value}`), 200, before);
  }
  assert.equal(await status(`andromeda-console=${other}`), 401);
});

test('a page that shows one person does nothing as another', async () => {
  const [ada, bob] = [await signIn(app, 'ada'), await signIn(app, 'bob')];
  const { userId } = (await (await ada.call('/session')).json()) as { userId: string };
  const headers = { 'x-andromeda-person': userId };
  for (const path of ['/api/business/me', '/session', '/events']) {
    assert.equal((await bob.call(path, { headers })).status, 401, path);
  }
  assert.equal((await ada.call('/api/business/me', { headers })).status, 200);
  assert.equal((await bob.call('/session')).status, 200);
});

import assert from 'node:assert/strict';
import { request as send } from 'node:http';
import { after, before, test } from 'node:test';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { adaHash } from '../identity/issuer/harness.ts';
import { type ConsoleApp, createCookieBrowser, signIn, startConsoleApp, submitSignIn } from './harness.ts';

let app: ConsoleApp;
before(async () => {
  app = await startConsoleApp();
});
after(async () => await app[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: what is in it is what the test is about
const json = async (response: Response): Promise<{ status: number; body: any }> => ({
  status: response.status,
  body: await response.json(),
});

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

test('a browser signs in at the issuer, comes back to where it was going, and calls both APIs', async () => {
  const browser = await signIn(app, 'ada', '/keys?filter=x');
  const me = await json(await browser.call('/api/business/me'));
  assert.equal(me.status, 200);
  assert.equal(me.body.user.primary_email, 'ada@physics.example');
  const orgId = me.body.memberships[0].org_id;
  const clusters = await json(await browser.call(`/api/platform/clusters?businessOrgId=${orgId}`));
  assert.equal(clusters.body.items.length, 2);
  // Signed in at the issuer by now: a second browser window needs no password.
  browser.cookies.delete(`${app.url} andromeda-console`);
  const again = await browser.follow(`${app.url}/sign-in?to=/clusters`);
  assert.equal(again.url, `${app.url}/clusters`);
  assert.equal((await browser.call('/session')).status, 200);
});

/** A JSON Web Token. `eyJ` alone also stands by chance in what is random (cookies, sealed secrets). */
const webToken = /eyJ[\w-]{8,}\.[\w-]+\./;

test('the browser holds a cookie that no script reads, and no token', async () => {
  const browser = createCookieBrowser(app.url);
  const lines: string[] = [];
  const seen: string[] = [];
  const visit = browser.visit;
  browser.visit = async (url, init) => {
    const response = await visit(url, init);
    if (url.startsWith(app.url)) {
      lines.push(...response.headers.getSetCookie());
      seen.push(JSON.stringify([...response.headers]), await response.clone().text());
    }
    return response;
  };
  const page = await browser.follow(`${app.url}/sign-in`);
  await submitSignIn(browser, page, 'ada@physics.example');
  await browser.call('/session');
  await browser.call('/sessions');
  const session = lines.find((line) => line.startsWith('andromeda-console='));
  assert.match(
    session ?? '',
    /^andromeda-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  );
  assert.doesNotMatch(seen.join('\n'), webToken);
  const stored = await app.test.app.store.read.selectFrom('console_sessions').selectAll().execute();
  assert.doesNotMatch(JSON.stringify(stored), webToken);
  assert.ok(!JSON.stringify(stored).includes(/=([\w-]{43});/.exec(session ?? '')?.[1] ?? '?'));
});

test('what comes from another site, or from no page of ours, is refused before it is looked at', async () => {
  const browser = await signIn(app, 'ada');
  const add = (headers: Record<string, string>) =>
    browser.visit(`${app.url}/api/business/me/ssh-keys`, {
      method: 'POST',
      body: '{"public_key":"x"}',
      headers: { 'content-type': 'application/json', ...headers },
    });
  const own = { 'x-andromeda-console': 'active' };
  for (const headers of [
    {},
    own,
    { 'sec-fetch-site': 'same-origin' },
    { ...own, 'sec-fetch-site': 'same-site' },
    { ...own, 'sec-fetch-site': 'cross-site' },
    { ...own, 'sec-fetch-site': 'none' },
  ]) {
    assert.equal((await add(headers)).status, 403, JSON.stringify(headers));
  }
  for (const path of ['/api/business/me', '/session', '/sessions', '/events']) {
    assert.equal((await browser.visit(app.url + path)).status, 403, path);
  }
  assert.equal((await browser.visit(`${app.url}/sign-out`, { method: 'POST' })).status, 403);
  // With both, it is the API that refuses.
  assert.equal((await add({ ...own, 'sec-fetch-site': 'same-origin' })).status, 400);
  assert.equal((await browser.call('/session')).status, 200);
});

test('no request is answered without a session, and a token in the place of the cookie is worth nothing', async () => {
  const stranger = createCookieBrowser(app.url);
  for (const path of ['/api/business/me', '/api/platform/clusters', '/session', '/sessions', '/events']) {
    assert.equal((await stranger.call(path)).status, 401, path);
  }
  const forged = { authorization: 'Bearer x', cookie: `andromeda-console=${'A'.repeat(43)}` };
  assert.equal((await stranger.call('/api/business/me', { headers: forged })).status, 401);
});

test('of the APIs there are the operations, and nothing else', async () => {
  const browser = await signIn(app, 'ada');
  for (const path of [
    '/api/business/docs',
    '/api/platform/openapi.json',
    '/api/business/healthz',
    '/api/platform/.well-known/oauth-protected-resource',
    '/api/other/me',
    '/api/business',
  ]) {
    assert.equal((await browser.call(path)).status, 404, path);
  }
  // What the API does not allow is not allowed here.
  const bob = await signIn(app, 'bob');
  assert.equal((await bob.call('/api/business/operator/clusters')).status, 403);
});

test('signing out ends the session here and at the issuer', async () => {
  const browser = await signIn(app, 'ada');
  const copy = new Map(browser.cookies);
  const { body } = await json(await browser.call('/sign-out', { method: 'POST' }));
  assert.match(body.url, new RegExp(`^${app.issuerUrl}/session/end\\?`));
  const end = await browser.follow(body.url);
  assert.equal(end.url, `${app.url}/signed-out`);
  assert.equal((await browser.call('/session')).status, 401);
  const page = await browser.follow(`${app.url}/sign-in`);
  assert.match(await page.response.text(), /autocomplete="current-password"/);
  // A copy of the cookies is worth nothing either.
  for (const [key, value] of copy) browser.cookies.set(key, value);
  assert.equal((await browser.call('/session')).status, 401);
  const again = await browser.follow(`${app.url}/sign-in`);
  assert.match(await again.response.text(), /autocomplete="current-password"/);
});

test('a session is listed and ended from another one, and no other person can', async () => {
  const first = await signIn(app, 'eve');
  const second = await signIn(app, 'eve');
  const { body } = await json(await second.call('/sessions'));
  assert.equal(body.sessions.length, 2);
  const other = body.sessions.find((one: { current: boolean }) => !one.current);
  const ada = await signIn(app, 'ada');
  const end = (by: typeof ada) => by.call(`/sessions/${other.id}/end`, { method: 'POST' });
  assert.equal((await end(ada)).status, 404);
  assert.equal((await first.call('/session')).status, 200);
  assert.equal((await end(second)).status, 200);
  assert.equal((await first.call('/session')).status, 401);
  await signIn(app, 'eve');
  assert.equal((await json(await second.call('/sessions/end-others', { method: 'POST' }))).body.ended, 1);
});

test('a new password ends every session', async () => {
  const { store } = app.test.app;
  const browser = await signIn(app, 'bob');
  const bob = await findPersonByEmail(store.read, 'bob@physics.example');
  const hash = adaHash.replace('$scrypt$ln=10', '$scrypt$ln=11');
  await store.write((tx) => setPassword(tx, { userId: bob?.id ?? '', hash }));
  assert.equal((await browser.call('/api/business/me')).status, 401);
  const page = await browser.follow(`${app.url}/sign-in`);
  assert.equal(new URL(page.url).origin, app.issuerUrl, 'the issuer asks for the new one');
});

test('a sign-in leads to no other site, however the slashes are hidden, and a callback counts only for the browser that was sent away', async () => {
  const browser = await signIn(app, 'ada');
  for (const to of [
    '//evil.example',
    'https://evil.example/',
    '/\\evil.example',
    'keys',
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
  const callback = await callbackOf(stranger, '/.//evil.example/x');
  const victim = createCookieBrowser(app.url);
  const end = await victim.follow(callback);
  assert.equal(new URL(end.url).pathname, '/signed-out');
  assert.equal((await victim.call('/session')).status, 401);
  assert.equal((await stranger.visit(callback)).headers.get('location'), '/');
});

test('the page and its files carry a strict policy; files are for good and packed, the page is asked for anew', async () => {
  const page = await fetch(`${app.url}/members?x=1`, { headers: { 'accept-encoding': 'gzip, br' } });
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /require-trusted-types-for 'script'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
  assert.equal(page.headers.get('cache-control'), 'no-cache');
  const html = await page.text();
  assert.doesNotMatch(html, /<script(?![^>]*src=)|<style|style=|\son\w+=/);
  const [, script = ''] = /module" src="(\/assets\/[^"]+)"/.exec(html) ?? [];
  const file = await fetch(app.url + script, { headers: { 'accept-encoding': 'br' } });
  await file.text();
  assert.match(file.headers.get('cache-control') ?? '', /immutable/);
  assert.equal(file.headers.get('content-encoding'), 'br');
  const same = await fetch(`${app.url}/`, { headers: { 'if-none-match': '"x"' } });
  assert.equal(same.status, 200);
  await same.text();
  assert.equal((await fetch(`${app.url}/assets/other.js`)).status, 404);
  assert.equal((await fetch(`${app.url}/assets/../files.json`)).status, 404);
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
  const [ada, eve] = [await signIn(app, 'ada'), await signIn(app, 'eve')];
  const { userId } = (await (await ada.call('/session')).json()) as { userId: string };
  const headers = { 'x-andromeda-person': userId };
  for (const path of ['/api/business/me', '/session', '/events']) {
    assert.equal((await eve.call(path, { headers })).status, 401, path);
  }
  assert.equal((await ada.call('/api/business/me', { headers })).status, 200);
  assert.equal((await eve.call('/session')).status, 200);
});

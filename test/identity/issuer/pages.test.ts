import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { DomainError } from '../../../src/domain/error.ts';
import { html } from '../../../src/lib/pages.ts';
import {
  ada,
  adaHash,
  addPerson,
  createBrowser,
  credentials,
  type Device,
  openDevice,
  type Page,
  poll,
  startDevice,
  startHarness,
} from './harness.ts';

function assertSafe(page: Page): void {
  assert.doesNotMatch(
    page.text,
    /<script|\son\w+=|javascript:|<link|<img|@import|url\(|\sstyle=|https?:\/\//i,
  );
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /form-action 'self'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|script-src|\*/);
  const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(page.text) ?? [];
  assert.ok(policy.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`));
  assert.equal(page.headers.get('cache-control'), 'no-store');
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
}

test('no page has a script or anything from other origins, and each is sent with a strict policy', async () => {
  await using harness = await startHarness();
  const { device, browser, page: signIn } = await openDevice(harness.url);
  const wrong = await browser.submit(signIn, '/device/sign-in', { email: ada.email, password: 'x' });
  await browser.submit(signIn, '/device/sign-in', credentials);
  const pages = [signIn, wrong, await browser.visit('/device/approval', { csrf: 'x' })];
  for (const path of [
    ...['/device', '/device?user_code=BBBB-BBBB', device.verification_uri_complete],
    ...['/device/approved', '/device/denied', '/nowhere', '/device/xyz'],
    ...['/auth', '/auth?client_id=andromeda-cli&response_type=code'],
  ]) {
    pages.push(await browser.visit(path, undefined, { accept: 'text/html' }));
  }
  for (const page of pages) {
    assert.match(page.text, /<!doctype html>/);
    assertSafe(page);
    assert.doesNotMatch(page.text, /node_modules|\.ts:|at async/);
  }
});

test('what came from outside is text in the page', async () => {
  await using harness = await startHarness();
  const evil = `"><script>alert('x')</script>`;
  const body = new URLSearchParams({ client_id: 'andromeda-cli', scope: 'openid' });
  const headers = { 'user-agent': `${evil}${'x'.repeat(5000)}` };
  const response = await fetch(`${harness.url}/device/auth`, { method: 'POST', body, headers });
  const device = (await response.json()) as Device;
  const browser = createBrowser(harness.url);
  const signIn = await browser.visit(device.verification_uri_complete);
  const wrong = await browser.submit(signIn, '/device/sign-in', { email: evil, password: 'x' });
  await browser.submit(signIn, '/device/sign-in', credentials);
  const approval = await browser.visit(device.verification_uri_complete);
  assert.match(approval.text, /&quot;&gt;&lt;script&gt;/);
  assert.ok(approval.text.length < 15_000);
  const typed = await browser.visit(`/device?user_code=${encodeURIComponent(evil)}`);
  const error = await browser.visit(`/auth?client_id=${encodeURIComponent(evil)}`, undefined, {
    accept: 'text/html',
  });
  for (const page of [wrong, approval, typed, error]) assertSafe(page);
  assert.equal(String(html`${'<a>'}${{ html: '<b>' }}${html`<c>`}`.html), '&lt;a&gt;&lt;b&gt;<c>');
});

test('what hides or turns text around is escaped in the pages, and a long name is cut', async () => {
  await using harness = await startHarness();
  const name = `\u202egnp.exe\u200b\u0007\u009b31m${'n'.repeat(200)}`;
  await harness.store.write((tx) =>
    tx.db.updateTable('users').set({ display_name: name }).where('id', '=', ada.id).execute(),
  );
  const { device, browser, page: signIn } = await openDevice(harness.url);
  const wrong = await browser.submit(signIn, '/device/sign-in', { email: 'a\u202e@b', password: 'x' });
  assert.match(wrong.text, /value="a\\u202e@b"/);
  await browser.submit(signIn, '/device/sign-in', credentials);
  const { text } = await browser.visit(device.verification_uri_complete);
  const [, shown = ''] = /Signed in as (.*) \(ada@/.exec(text) ?? [];
  assert.match(shown, /^\\u202egnp\.exe\\u200b\\u0007\\u009b31mn+…$/);
  assert.equal([...shown].length, 80);
  assert.doesNotMatch(text, /[\u202e\u200b]/);
});

test('a form counts only from the browser that was given it', async () => {
  await using harness = await startHarness();
  const { device, browser, page: signIn } = await openDevice(harness.url);
  const stranger = createBrowser(harness.url);
  const refused = [
    await stranger.submit(signIn, '/device/sign-in', credentials),
    await browser.submit(signIn, '/device/sign-in', { ...credentials, csrf: '' }),
    await browser.visit('/device/sign-in', { ...credentials, user_code: device.user_code }),
  ];
  await browser.submit(signIn, '/device/sign-in', credentials);
  const approval = await browser.visit(device.verification_uri_complete);
  refused.push(
    // The value from before signing in is worth nothing after it.
    await browser.submit(signIn, '/device/sign-in', credentials),
    await stranger.submit(approval, '/device/approval', { decision: 'approve' }),
    await browser.submit(approval, '/device/approval', { decision: 'approve', csrf: 'x' }),
    await browser.visit('/device/approval?decision=approve', { user_code: device.user_code }),
  );
  const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(approval.text) ?? [];
  const fields = { csrf, user_code: device.user_code, decision: 'approve' };
  refused.push(await browser.visit('/device/approval', fields, { 'sec-fetch-site': 'cross-site' }));
  for (const page of refused) assert.equal(page.status, 403);
  assert.equal((await poll(harness.url, device)).body.error, 'authorization_pending');
  // Somebody else's value, with one's own cookie that is not signed in.
  await stranger.visit(device.verification_uri_complete);
  const other = await stranger.submit(approval, '/device/approval', { decision: 'approve' });
  assert.equal(other.status, 403);
});

test('a browser stays signed in for half a day', async (t) => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  const { browser, page: first } = await openDevice(harness.url);
  await browser.submit(first, '/device/sign-in', credentials);
  const later = async () => {
    // The device code is on the library's clock, this one is ours.
    const page = await browser.visit((await startDevice(harness.url)).verification_uri_complete);
    return page.text.includes('type="password"');
  };
  assert.equal(await later(), false);
  const cookies = new Map(browser.cookies);
  for (const [name, value] of cookies) browser.cookies.set(name, value.replace(/^./, 'x'));
  assert.equal(await later(), true);
  for (const [name, value] of cookies) browser.cookies.set(name, value);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 12 * 3_600_000 });
  at = Date.now();
  assert.equal(await later(), true);
});

test('signing out ends the session of the cookie, and of every copy of it, over a restart too', async () => {
  await using harness = await startHarness();
  const { device, browser, page: first } = await openDevice(harness.url);
  const { verification_uri_complete: link } = device;
  await browser.submit(first, '/device/sign-in', credentials);
  const approval = await browser.visit(link);
  const copy = createBrowser(harness.url);
  for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
  const asksForPassword = async (one: typeof copy) => /type="password"/.test((await one.visit(link)).text);
  assert.equal(await asksForPassword(copy), false);
  await browser.submit(approval, '/device/sign-out');
  assert.equal(await asksForPassword(browser), true);
  const stolen = new Map(copy.cookies);
  assert.equal(await asksForPassword(copy), true);
  await harness.restart();
  copy.cookies.clear();
  for (const [name, value] of stolen) copy.cookies.set(name, value);
  assert.equal(await asksForPassword(copy), true);
});

test('who is not an active person cannot sign in', async () => {
  await using harness = await startHarness();
  const hash = adaHash;
  await addPerson(harness.store, { id: 'user_2', email: 'sys@x.example', name: 'S', hash, kind: 'system' });
  const gone = { id: 'user_3', email: 'gone@x.example', name: 'G', state: 'deactivated' as const };
  await addPerson(harness.store, { ...gone, hash });
  const { browser, page } = await openDevice(harness.url);
  for (const email of ['sys@x.example', 'gone@x.example']) {
    const refused = await browser.submit(page, '/device/sign-in', { email, password: ada.password });
    assert.match(refused.text, /The email or password is wrong/);
  }
});

test('large bodies are refused', async () => {
  await using harness = await startHarness();
  for (const path of ['/token', '/device/sign-in', '/device/auth']) {
    const body = new URLSearchParams({ client_id: 'x'.repeat(20_000) });
    const response = await fetch(harness.url + path, { method: 'POST', body });
    assert.equal(response.status, 413);
  }
});

test('nothing is printed: the library keeps its notices to itself', async (t) => {
  const printed: unknown[] = [];
  for (const name of ['log', 'info', 'warn', 'error'] as const)
    t.mock.method(console, name, (...args: unknown[]) => printed.push(args));
  await using harness = await startHarness();
  const { browser, device } = await openDevice(harness.url);
  await poll(harness.url, device);
  await browser.visit('/auth', undefined, { accept: 'text/html' });
  await fetch(`${harness.url}/token`, { method: 'POST', headers: { origin: 'http://x.example' } });
  const headers = { 'content-type': 'application/json' };
  await fetch(`${harness.url}/token`, { method: 'POST', body: '{', headers });
  assert.deepEqual(printed, []);
});

test('while the database takes no writes a page says so and when to try again, and nothing was used up', async () => {
  await using harness = await startHarness();
  const { device, browser, page: signIn } = await openDevice(harness.url);
  const signedIn = await browser.submit(signIn, '/device/sign-in', credentials);
  const approval = await browser.visit(signedIn.location ?? '');
  const { write } = harness.store;
  const message = 'The database takes no writes at the moment. Nothing was changed; try again.';
  harness.store.write = async () => {
    throw new DomainError('service_unavailable', message);
  };
  const away = await browser.submit(approval, '/device/approval', { decision: 'approve' });
  assert.deepEqual([away.status, away.headers.get('retry-after')], [503, '1']);
  assert.ok(away.text.includes(message), away.text);
  assertSafe(away);
  harness.store.write = write;
  const approved = await browser.submit(approval, '/device/approval', { decision: 'approve' });
  assert.equal(approved.location, '/device/approved');
  assert.equal((await poll(harness.url, device)).status, 200);
});

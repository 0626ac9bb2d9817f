import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackoff } from '../../../src/identity/issuer/backoff.ts';
import { ada, addPerson, createBrowser, type Harness, startDevice, startHarness } from './harness.ts';

async function attempt(harness: Harness, { email = ada.email, password = 'wrong', from = '127.0.0.1' } = {}) {
  const device = await startDevice(harness.url);
  const browser = createBrowser(harness.url, from);
  const page = await browser.visit(device.verification_uri_complete);
  return browser.submit(page, '/device/sign-in', { email, password });
}

test('a wrong email and a wrong password look the same', async () => {
  await using harness = await startHarness();
  await addPerson(harness.store, { id: 'user_1', email: 'no@password.example', name: 'No' });
  const pages = [
    await attempt(harness),
    await attempt(harness, { email: 'nobody@physics.example', password: ada.password }),
    await attempt(harness, { email: 'no@password.example', password: ada.password }),
    await attempt(harness, { email: '', password: '' }),
  ];
  for (const page of pages) {
    assert.equal(page.status, 403);
    assert.match(page.text, /The email or password is wrong\./);
  }
  const right = await attempt(harness, { email: ' ADA@Physics.Example ', password: ada.password });
  assert.equal(right.status, 303);
});

test('wrong passwords are slowed down: longer each time, and over when the time is', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  for (let i = 0; i < 5; i++) assert.equal((await attempt(harness)).status, 403);
  const waits: number[] = [];
  for (let i = 0; i < 4; i++) {
    const page = await attempt(harness);
    assert.equal(page.status, 429);
    const seconds = Number(page.headers.get('retry-after'));
    assert.match(page.text, new RegExp(`Wait ${seconds} seconds? and try again`));
    waits.push(seconds);
    at += seconds * 1000;
    assert.equal((await attempt(harness)).status, 403);
  }
  assert.deepEqual(waits, [1, 2, 4, 8]);
  const early = await attempt(harness, { password: ada.password });
  assert.equal(early.status, 429);
  assert.doesNotMatch(early.text, /password is wrong/);
  at += 16_000;
  assert.equal((await attempt(harness, { password: ada.password })).status, 303);
  assert.equal((await attempt(harness)).status, 403);
});

test('nobody can lock somebody else out from another address', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.9' })).status, 303);
  let throttled = 0;
  for (let i = 0; i < 26; i++) {
    const page = await attempt(harness, { from: '127.0.0.66' });
    if (page.status === 429) {
      throttled++;
      at += Number(page.headers.get('retry-after')) * 1000;
    }
  }
  assert.ok(throttled > 0);
  // Known from before: at once. Never seen: at once while few failed, and within half a minute at the worst.
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.9' })).status, 303);
  const fresh = await attempt(harness, { password: ada.password, from: '127.0.0.10' });
  if (fresh.status === 429) {
    assert.ok(Number(fresh.headers.get('retry-after')) <= 30);
    at += 30_000;
    assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.10' })).status, 303);
  } else assert.equal(fresh.status, 303);
});

test('guesses made at the same time are counted like guesses made in turn', async () => {
  await using harness = await startHarness({ now: () => 1_800_000_000_000 });
  const pages = await Promise.all(Array.from({ length: 12 }, () => attempt(harness)));
  assert.equal(pages.filter(({ status }) => status === 403).length, 5);
  assert.equal(pages.filter(({ status }) => status === 429).length, 7);
});

test('guessing user codes is slowed down', async () => {
  await using harness = await startHarness({ now: () => Date.now() });
  const browser = createBrowser(harness.url);
  let last = await browser.visit('/device?user_code=BBBBBBBB');
  for (let i = 0; i < 20; i++) last = await browser.visit(`/device?user_code=BBBBBBB${i}`);
  assert.equal(last.status, 429);
  assert.match(last.text, /Too many wrong codes\. Wait 1 second and try again\./);
});

test('back-off: free tries, doubling, a cap, forgetting, and bounded memory', () => {
  let at = 0;
  const backoff = createBackoff({ free: 2, firstMs: 100, mostMs: 1000, forgetMs: 5000 }, () => at);
  const waits = Array.from({ length: 8 }, () => {
    backoff.failed('key');
    return backoff.waitMs('key');
  });
  assert.deepEqual(waits, [0, 100, 200, 400, 800, 1000, 1000, 1000]);
  backoff.undo('key');
  at += 999;
  assert.equal(backoff.waitMs('key'), 1);
  assert.equal(backoff.waitMs('other'), 0);
  at += 5000;
  assert.equal(backoff.waitMs('key'), 0);
  backoff.failed('key');
  backoff.failed('key');
  for (let i = 0; i < 10_000; i++) backoff.failed(`other ${i}`);
  assert.equal(backoff.waitMs('key'), 0);
});

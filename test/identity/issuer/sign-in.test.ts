import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireRow } from '../../support/store.ts';
import {
  ada,
  adaHash,
  addPerson,
  answerDevice,
  createBrowser,
  credentials,
  type Harness,
  openDevice,
  type Page,
  refresh,
  signIn,
  startDevice,
  startHarness,
} from './harness.ts';

async function attempt(harness: Harness, { email = ada.email, password = 'wrong', from = '127.0.0.1' } = {}) {
  const { browser, page } = await openDevice(harness.url, createBrowser(harness.url, from));
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

test('whatever fails at other addresses, one with no failure lately has a try at an account, and one alone', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.9' })).status, 303);
  for (let n = 1; n <= 30; n++) assert.equal((await attempt(harness, { from: `127.0.66.${n}` })).status, 403);
  // The account's own limit holds by now: for who failed lately, and not for who is known or new.
  const refused = await attempt(harness, { from: '127.0.66.1' });
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) <= 30);
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.9' })).status, 303);
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.10' })).status, 303);

  // A failure takes the one try, at whichever account; ten minutes later there is another.
  assert.equal((await attempt(harness, { email: 'else@physics.example', from: '127.0.0.11' })).status, 403);
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.11' })).status, 429);
  at += 10 * 60_000;
  for (let n = 31; n <= 60; n++)
    assert.equal((await attempt(harness, { from: `127.0.66.${n}` })).status, 403);
  assert.equal((await attempt(harness, { from: '127.0.66.31' })).status, 429);
  assert.equal((await attempt(harness, { password: ada.password, from: '127.0.0.11' })).status, 303);
});

test('guesses made at the same time are counted like guesses made in turn', async () => {
  await using harness = await startHarness({ now: () => 1_800_000_000_000 });
  const pages = await Promise.all(Array.from({ length: 12 }, () => attempt(harness)));
  assert.equal(pages.filter(({ status }) => status === 403).length, 5);
  assert.equal(pages.filter(({ status }) => status === 429).length, 7);
});

test('user codes have a rate: wrong ones stop no one, a flood of them is slowed, and a known browser has its own', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  const known = createBrowser(harness.url);
  await answerDevice(harness.url, await startDevice(harness.url), 'approve', known);
  const device = await startDevice(harness.url);
  const browser = createBrowser(harness.url);
  for (let i = 0; i < 30; i++) {
    assert.equal((await browser.visit(`/device?user_code=BBBBBB${String(i).padStart(2, '0')}`)).status, 404);
  }
  assert.equal((await browser.visit(device.verification_uri_complete)).status, 200);
  for (let i = 0; i < 30; i++) await browser.visit('/device?user_code=BBBBBBBB');
  const last = await browser.visit('/device?user_code=BBBBBBBB');
  assert.equal(last.status, 429);
  assert.match(last.text, /Too many wrong codes\. Wait 1 second and try again\./);
  assert.equal((await known.visit(device.verification_uri_complete)).status, 200);
  at += 1000;
  assert.equal((await browser.visit(device.verification_uri_complete)).status, 200);
});

test('a right password from a browser that signed in before is never held back by what others try', async () => {
  let at = Date.now();
  await using harness = await startHarness({ now: () => at });
  const own = createBrowser(harness.url);
  await answerDevice(harness.url, await startDevice(harness.url), 'approve', own);
  const cookies = new Map(own.cookies);
  const cookie = [...cookies.keys()].find((name) => name.includes('known'));
  assert.ok(cookie);
  // Signed out, as the next morning; the cookie that knows the browser stays.
  for (const name of own.cookies.keys()) if (name !== cookie) own.cookies.delete(name);
  const tryOwn = async (password: string, browser = own) => {
    const { page } = await openDevice(harness.url, browser);
    const answer = await browser.submit(page, '/device/sign-in', { email: ada.email, password });
    for (const name of browser.cookies.keys()) if (name !== cookie) browser.cookies.delete(name);
    return answer;
  };
  for (let i = 0; i < 5; i++) assert.equal((await attempt(harness)).status, 403);
  assert.equal((await attempt(harness, { password: ada.password })).status, 429);
  assert.equal((await tryOwn(ada.password)).status, 303);

  // Its own guesses are bounded too: as many as a person makes, and then as for any other browser.
  for (let i = 0; i < 20; i++) assert.equal((await tryOwn(`wrong ${i}`)).status, 403);
  assert.equal((await tryOwn('wrong')).status, 429);
  at += 30_000;
  assert.equal((await tryOwn(ada.password)).status, 303);

  // A cookie that we did not sign, or that knows somebody else, is worth nothing.
  await addPerson(harness.store, { id: 'user_9', email: 'bob@physics.example', name: 'Bob', hash: adaHash });
  const bob = { email: 'bob@physics.example' };
  for (let i = 0; i < 5; i++) assert.equal((await attempt(harness, bob)).status, 403);
  const { page } = await openDevice(harness.url, own);
  const asBob = await own.submit(page, '/device/sign-in', { ...bob, password: ada.password });
  assert.equal(asBob.status, 429);
  const forged = createBrowser(harness.url);
  const value = cookies.get(cookie) ?? '';
  forged.cookies.set(
    cookie,
    value.replace(/^./, (first) => (first === 'x' ? 'y' : 'x')),
  );
  at += 1000;
  for (let i = 0; i < 8; i++) await attempt(harness);
  assert.equal((await tryOwn(ada.password, forged)).status, 429);
});

test('the cookie that knows a browser is out of the reach of scripts, and signs no one in', async () => {
  await using harness = await startHarness();
  const { browser, page } = await openDevice(harness.url);
  const signedIn = await browser.submit(page, '/device/sign-in', credentials);
  const line = signedIn.headers.getSetCookie().find((one) => one.includes('known')) ?? '';
  assert.match(line, /; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/);
  for (const name of browser.cookies.keys()) if (!name.includes('known')) browser.cookies.delete(name);
  const again = await browser.visit((await startDevice(harness.url)).verification_uri_complete);
  assert.match(again.text, /type="password"/);
});

test('whatever strangers try, a known browser is served, an address with few tries too, and all are answered', async () => {
  await using harness = await startHarness();
  // Dear enough for a queue, and no dearer: no password has this hash.
  const hash = `$scrypt$ln=14,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$${'A'.repeat(43)}`;
  const victims = Array.from({ length: 120 }, (_, n) => `victim-${n}@physics.example`);
  for (const email of victims) await addPerson(harness.store, { id: email, email, name: 'V', hash });
  // At the address of one of them, so that only the browser tells the two apart.
  const own = createBrowser(harness.url, '127.0.1.1');
  await answerDevice(harness.url, await startDevice(harness.url), 'approve', own);
  for (const name of own.cookies.keys()) if (!name.includes('known')) own.cookies.delete(name);
  const open = (from: string) => openDevice(harness.url, createBrowser(harness.url, from));
  const attackers = await Promise.all([1, 2, 3].map((n) => open(`127.0.1.${n}`)));
  const [known, fresh] = [await openDevice(harness.url, own), await open('127.0.0.10')];
  const signIn = ({ browser, page }: typeof known) => browser.submit(page, '/device/sign-in', credentials);

  // More than may wait: the first that is refused says that the queue is full.
  const answers: Page[] = [];
  let onFull = () => {};
  const full = new Promise<void>((resolve) => {
    onFull = resolve;
  });
  const guesses = attackers.flatMap(({ browser, page }, n) =>
    Array.from({ length: 40 }, async (_, guess) => {
      const fields = { email: victims[n * 40 + guess] ?? '', password: 'wrong' };
      const answer = await browser.submit(page, '/device/sign-in', fields);
      answers.push(answer);
      if (answer.status === 503) onFull();
    }),
  );
  await full;
  const [byKnown, byFresh] = await Promise.all([signIn(known), signIn(fresh)]);
  assert.deepEqual([byKnown.status, byFresh.status], [303, 303]);
  assert.ok(answers.length < guesses.length, 'the queue was full until then');
  await Promise.all(guesses);
  const statuses = new Set(answers.map(({ status }) => status));
  assert.ok(statuses.has(403) && statuses.has(503) && statuses.size === 2, [...statuses].join());
  for (const { status, headers } of answers)
    assert.equal(headers.get('retry-after'), status === 503 ? '5' : null);
});

const better = 'tundra violin ladle';

async function change(
  harness: Harness,
  fields: { email?: string; current?: string; next?: string; again?: string } = {},
  browser = createBrowser(harness.url),
) {
  const page = await browser.visit('/password');
  const { next = better } = fields;
  return browser.submit(page, '/password', {
    email: ada.email,
    current: ada.password,
    next,
    again: next,
    ...fields,
  });
}

test('a new password ends every other browser and every terminal, and stands in the audit trail', async () => {
  await using harness = await startHarness();
  const other = createBrowser(harness.url);
  await answerDevice(harness.url, await startDevice(harness.url), 'approve', other);
  const tokens = await signIn(harness.url);
  const own = createBrowser(harness.url);
  const changed = await change(harness, {}, own);
  assert.deepEqual([changed.status, changed.location], [303, '/password/changed']);
  const asks = async (browser: typeof own) =>
    /type="password"/.test(
      (await browser.visit((await startDevice(harness.url)).verification_uri_complete)).text,
    );
  assert.deepEqual([await asks(other), await asks(own)], [true, false]);
  assert.equal((await refresh(harness.url, tokens.refresh_token)).body.error, 'invalid_grant');
  assert.equal((await change(harness)).status, 403);
  const entry = await requireRow(harness.store.read, 'audit_entries', { operation: 'changeOwnPassword' });
  assert.deepEqual(
    [entry.actor_user_id, entry.subject_user_id, entry.source_address, entry.result],
    [ada.id, ada.id, '127.0.0.1', 'done'],
  );
  assert.ok(!JSON.stringify(entry).includes(better));
});

test('the form counts only from its own browser, and guessing on it is slowed as on the sign-in page', async () => {
  await using harness = await startHarness({ now: () => Date.parse('2030-01-01') });
  const browser = createBrowser(harness.url);
  const page = await browser.visit('/password');
  const fields = { email: ada.email, current: ada.password, next: better, again: better };
  const stranger = createBrowser(harness.url);
  await stranger.visit('/password');
  assert.equal((await stranger.submit(page, '/password', fields)).status, 403);
  assert.equal((await browser.visit('/password', fields)).status, 403);
  const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.text) ?? [];
  const crossed = await browser.visit('/password', { ...fields, csrf }, { 'sec-fetch-site': 'cross-site' });
  assert.equal(crossed.status, 403);

  for (let i = 0; i < 5; i++) assert.equal((await change(harness, { current: `wrong ${i}` })).status, 403);
  const slowed = await change(harness);
  assert.equal(slowed.status, 429);
  assert.match(slowed.text, /Too many wrong passwords\. Wait 1 second and try again\./);
  assert.equal(slowed.headers.get('retry-after'), '1');
});

test('of two changes at once one counts, and no weak one does', async () => {
  await using harness = await startHarness();
  for (const next of ['short', 'Password1234', 'ada@physics.example', ada.password]) {
    assert.equal((await change(harness, { next })).status, 422, next);
  }
  const answers = await Promise.all([better, 'marble otter quilt'].map((next) => change(harness, { next })));
  assert.equal(answers.filter(({ status }) => status === 303).length, 1);
});

const via = (client: string) => ({ 'x-forwarded-for': client });

async function attemptVia(harness: Harness, client: string, password: string) {
  const device = await startDevice(harness.url);
  const browser = createBrowser(harness.url);
  const page = await browser.visit(device.verification_uri_complete, undefined, via(client));
  return browser.submit(page, '/device/sign-in', { email: ada.email, password }, via(client));
}

test('behind a trusted proxy wrong passwords hold back the browser that sent them, and no other', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.1'], now: () => 1_800_000_000_000 });
  for (let i = 0; i < 5; i++) assert.equal((await attemptVia(harness, '192.0.2.66', 'wrong')).status, 403);
  assert.equal((await attemptVia(harness, '192.0.2.66', ada.password)).status, 429);
  // What stands further left is the client's own invention.
  assert.equal((await attemptVia(harness, '198.51.100.1, 192.0.2.66', ada.password)).status, 429);
  assert.equal((await attemptVia(harness, '192.0.2.1', ada.password)).status, 303);
  assert.ok(harness.log.some((line) => line.includes('"address":"192.0.2.66"')));
});

test('from anyone but a trusted proxy the header chooses no address', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.2'], now: () => 1_800_000_000_000 });
  for (let i = 0; i < 5; i++) assert.equal((await attemptVia(harness, `192.0.2.${i}`, 'wrong')).status, 403);
  assert.equal((await attemptVia(harness, '192.0.2.9', 'wrong')).status, 429);
});

test('the approval page names the address that the proxy passes on', async () => {
  await using harness = await startHarness({ proxies: ['127.0.0.1'] });
  const asked = await fetch(`${harness.url}/device/auth`, {
    method: 'POST',
    headers: via('2001:db8::7'),
    body: new URLSearchParams({ client_id: 'andromeda-cli', scope: 'openid' }),
  });
  const device = (await asked.json()) as { verification_uri_complete: string };
  const browser = createBrowser(harness.url);
  const page = await browser.visit(device.verification_uri_complete);
  await browser.submit(page, '/device/sign-in', credentials);
  const approval = await browser.visit(device.verification_uri_complete);
  assert.match(approval.text, /<dt>Address<\/dt><dd>2001:db8::7<\/dd>/);
});

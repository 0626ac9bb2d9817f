import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requireRow } from '../../support/store.ts';
import {
  ada,
  answerDevice,
  createBrowser,
  type Harness,
  refresh,
  signIn,
  startDevice,
  startHarness,
} from './harness.ts';

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

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { ada, poll, startDevice, startHarness } from './harness.ts';

const executablePath = '/usr/bin/chromium';
const skip = existsSync(executablePath) ? false : `the browser ${executablePath} is not installed`;

test('a person signs a terminal in with a browser that runs no JavaScript', { skip }, async () => {
  await using harness = await startHarness();
  const userDataDir = await mkdtemp(join(tmpdir(), 'andromeda-chromium-'));
  const context = await chromium.launchPersistentContext(userDataDir, {
    executablePath,
    javaScriptEnabled: false,
    viewport: { width: 360, height: 740 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    const device = await startDevice(harness.url);
    await page.goto(device.verification_uri);
    await page.getByLabel('Code').fill(device.user_code.toLowerCase());
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Email').fill(ada.email);
    await page.getByLabel('Password').fill(ada.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Approve this sign-in?' }).waitFor();
    const text = await page.locator('main').innerText();
    assert.ok(text.includes(device.user_code), text);
    assert.match(text, /Andromeda command line/);
    assert.match(text, /127\.0\.0\.1/);
    assert.match(text, /andromeda\/0\.1 \(linux\)/);
    const width = await page.locator('main').boundingBox();
    assert.ok(width && width.x >= 0 && width.x + width.width <= 360, 'fits a phone');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You can close this window').waitFor();
    assert.equal((await poll(harness.url, device)).status, 200);

    // Signed in by now: the link leads straight to the approval.
    const second = await startDevice(harness.url);
    await page.goto(second.verification_uri_complete);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByRole('heading', { name: 'Sign-in denied' }).waitFor();
    assert.equal((await poll(harness.url, second)).body.error, 'access_denied');
    assert.deepEqual(
      complaints.filter((line) => /security policy/i.test(line)),
      [],
    );
  } finally {
    await context.close();
    await rm(userDataDir, { recursive: true, force: true });
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noBrowser, withPage } from '../../support/browser.ts';
import { ada, poll, startDevice, startHarness } from './harness.ts';

test('a person signs a terminal in with a browser that runs no JavaScript', { skip: noBrowser }, async () => {
  await using harness = await startHarness();
  await withPage(
    async (page) => {
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
    },
    { width: 360, height: 740 },
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noBrowser, withPage } from '../../support/browser.ts';
import { ada, poll, startDevice, startHarness } from './harness.ts';

test('a person signs a terminal in, and changes their password, in a browser that runs no JavaScript', {
  skip: noBrowser,
}, async () => {
  await using harness = await startHarness();
  await withPage(
    async (page) => {
      const complaints: string[] = [];
      page.on('console', (message) => complaints.push(message.text()));
      const device = await startDevice(harness.url);
      await page.goto(device.verification_uri);
      await page.getByLabel('Code').fill(device.user_code.toLowerCase());
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('link', { name: 'Change your password' }).waitFor();
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

      await page.goto(`${harness.url}/password`);
      const change = async (current: string, next: string, again: string) => {
        await page.getByLabel('Email').fill(ada.email);
        await page.getByLabel('Current password').fill(current);
        await page.getByLabel('New password', { exact: true }).fill(next);
        await page.getByLabel('New password again').fill(again);
        await page.getByRole('button', { name: 'Change it' }).click();
      };
      const better = 'tundra violin ladle';
      await change(ada.password, better, `${better}s`);
      await page.getByText('The two new passwords are not the same.').waitFor();
      await change('not my password', better, better);
      await page.getByText('The email or password is wrong.').waitFor();
      await change(ada.password, better, better);
      await page.getByRole('heading', { name: 'Your password is changed' }).waitFor();
      // Still signed in, with the new one: the link leads straight to the approval.
      await page.goto((await startDevice(harness.url)).verification_uri_complete);
      await page.getByRole('heading', { name: 'Approve this sign-in?' }).waitFor();
      assert.deepEqual(
        complaints.filter((line) => /security policy/i.test(line)),
        [],
      );
    },
    { width: 360, height: 740 },
  );
});

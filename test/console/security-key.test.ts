/** The form for SSH keys takes a security key, and the service says whether it does. */
import { test } from 'node:test';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { newSecurityKey } from '../support/security-keys.ts';
import { startConsoleApp } from './harness.ts';
import { show, withPageOf } from './page.ts';

for (const [securityKeys, outcome] of [
  [true, 'You have 1 active key'],
  [false, 'Only Ed25519 keys are accepted, not sk-ssh-ed25519@openssh.com'],
] as const) {
  test(`a security key in the form, with securityKeys: ${securityKeys}`, { skip: noBrowser }, async () => {
    await using app = await startConsoleApp({ gateway: { securityKeys } });
    await using browser = await openBrowser();
    await withPageOf({ app, browser }, 'ada', async (page) => {
      await show(page, '/keys');
      await page.getByRole('button', { name: 'Register a key' }).first().click();
      const dialog = page.getByRole('dialog', { name: 'Register a key' });
      await dialog.getByLabel('Public key', { exact: true }).fill(`${newSecurityKey().publicKey} ada's key`);
      await dialog.getByRole('button', { name: 'Register the key' }).click();
      await page.getByText(outcome).first().waitFor();
    });
  });
}

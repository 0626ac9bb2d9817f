/** `approve.ts ADDRESS EMAIL PASSWORD`: somebody in a browser, who signs in and lets a device in. */
import { withPage } from './browser.ts';

const [address = '', email = '', password = ''] = process.argv.slice(2);
await withPage(async (page) => {
  await page.goto(address);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('You can close this window').waitFor();
});

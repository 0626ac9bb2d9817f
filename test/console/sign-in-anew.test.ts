/** A login over SSH that waits for a sign-in, and the link that it shows, in a real browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { eventually } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { password, personOfConsole, signIn, startConsoleApp } from './harness.ts';

const hour = 3_600_000;
const access = { maxHoursWithoutSignIn: 2 };

test('the link of a login that waits leads to a sign-in, and the login goes on', {
  skip: noBrowser,
}, async () => {
  await using app = await startConsoleApp({ config: { access }, gatewayLimits: { signInWaitSeconds: 120 } });
  await using browser = await openBrowser();
  await consoleFiles();
  using bob = await personOfConsole(app, 'bob');
  // The libraries that read tokens have the clock of this machine.
  await app.test.elsewhere("update users set last_sign_in_at = '2001-01-01T00:00:00.000Z'");
  const login = bob.start([bob.target, 'echo in']);
  const link = await eventually(
    async () => /Sign in at (\S+\/in), and it comes back/.exec(login.err())?.[1] ?? '',
    (found) => found !== '',
  );
  assert.equal(link, `${app.url}/in`);
  await browser.withPage(
    async (page) => {
      await page.goto(link);
      await page.getByLabel('Email').fill('bob@physics.example');
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Go back to your terminal').waitFor();
      const { status, out } = await login.ended;
      assert.deepEqual([status, out], [0, 'in\n']);
    },
    { width: 400, height: 800 },
    true,
  );
});

test('who opens the link signs in anew where the sign-in is too old, though a session is open', async () => {
  await using app = await startConsoleApp({ config: { access } });
  const browser = await signIn(app, 'bob');
  const soon = await browser.follow(`${app.url}/in`);
  assert.equal(soon.url, `${app.url}/signed-in`, 'the sign-in at the issuer is new enough');
  app.test.advance(2.1 * hour);
  const late = await browser.follow(`${app.url}/in`);
  assert.match(late.url, /max_age=7200/);
  assert.match(await late.response.text(), /name="password"/);
  const head = await browser.visit(`${app.url}/in`, { method: 'HEAD' });
  assert.equal(head.status, 405);
});

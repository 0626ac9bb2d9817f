/** A login over SSH that waits for a sign-in, and the link that it shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../support/app.ts';
import { createCookieBrowser, personOfConsole, signIn, startConsoleApp, submitSignIn } from './harness.ts';

const hour = 3_600_000;
const access = { maxHoursWithoutSignIn: 2 };

test('the link of a login that waits leads to a sign-in, and the login goes on', async () => {
  await using app = await startConsoleApp({ config: { access }, gatewayLimits: { signInWaitSeconds: 120 } });
  using bob = await personOfConsole(app, 'bob');
  // The libraries that read tokens have the clock of this machine.
  await app.test.elsewhere("update users set last_sign_in_at = '2001-01-01T00:00:00.000Z'");
  const login = bob.start([bob.target, 'echo in']);
  const link = await eventually(
    async () => /Sign in at (\S+\/in), and it comes back/.exec(login.err())?.[1] ?? '',
    (found) => found !== '',
  );
  assert.equal(link, `${app.url}/in`);
  const browser = createCookieBrowser(app.url);
  const end = await submitSignIn(browser, await browser.follow(link), 'bob@physics.example');
  assert.equal(end.url, `${app.url}/signed-in`);
  const { status, out } = await login.ended;
  assert.deepEqual([status, out], [0, 'in\n']);
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

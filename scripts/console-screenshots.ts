/**
 * `node scripts/console-screenshots.ts DIR`: every page of the console as it looks, wide and narrow, light and dark, in a
 * directory: to be looked at before a release. The pages are those of the menu, and what is reached from them.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { findPersonByEmail } from '../src/store/people/people.ts';
import {
  type ConsoleApp,
  password,
  personOfConsole,
  signIn,
  startConsoleApp,
} from '../test/console/harness.ts';
import { alpha, physics } from '../test/support/app.ts';
import { noBrowser, openBrowser } from '../test/support/browser.ts';

const widths = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };
const beyondTheMenu = [
  `/clusters/${alpha}`,
  `/clusters/${alpha}/people`,
  `/clusters/${alpha}/slurm`,
  '/members/{bob}',
  '/members/change?people={bob}',
  '/download',
  '/past/mine',
  '/signed-out?why=issuer_away',
];

const ids = { bob: '' };

const [given] = process.argv.slice(2);
if (given === undefined || noBrowser) {
  console.error(noBrowser || 'Say into which directory: node scripts/console-screenshots.ts DIR');
  process.exit(2);
}
const directory = resolve(given);
mkdirSync(directory, { recursive: true });

const lab = {
  ...physics,
  users: [
    ...(physics.users ?? []),
    { email: 'ada@physics.example', name: 'Ada Lovelace', staff: ['staff.operate'] },
  ],
} as typeof physics;
await using app = await startConsoleApp({ lab });
await using browser = await openBrowser();
using bob = await happen(app);
const shell = bob.start([bob.target, 'echo up; exec sleep 600']);
await shell.said;
await browser.withPage(photograph, widths.wide, true);
console.log(directory);

/** Something to see: sessions that are over, and a key that was revoked. */
async function happen(service: ConsoleApp) {
  using ada = await personOfConsole(service, 'ada');
  await ada.ssh([ada.target, 'nvidia-smi; squeue -u ada']);
  await ada.ssh(['-tt', ada.target], 'exit\n');
  const signedIn = await signIn(service, 'ada');
  const person = await findPersonByEmail(service.test.app.store.read, 'bob@physics.example');
  ids.bob = person?.id ?? '';
  await askForAccess(service);
  const headers = { 'idempotency-key': 'lost', 'audit-reason': 'The laptop is lost' };
  await signedIn.call(`/api/business/me/ssh-keys/${ada.keyId}/revoke`, { method: 'POST', headers });
  return personOfConsole(service, 'bob');
}

/** Something to decide. */
async function askForAccess(service: ConsoleApp): Promise<void> {
  const eve = await signIn(service, 'eve');
  const me = (await (await eve.call('/api/business/me')).json()) as { default_org_id: string };
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': 'ask',
    'audit-reason': 'For my thesis',
  };
  const body = JSON.stringify({
    permissions: ['clusters.read', 'clusters.ssh'],
    hours: 168,
    cluster_id: alpha,
  });
  const path = `/api/business/organizations/${me.default_org_id}/access-requests`;
  const response = await eve.call(path, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(await response.text());
}

async function photograph(page: Page): Promise<void> {
  await page.goto(app.url);
  await page.getByLabel('Email').fill('ada@physics.example');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  const links = await page
    .locator('.sheet nav a')
    .evaluateAll((all) => all.map((one) => one.getAttribute('href')));
  for (const link of [...links, ...beyondTheMenu]) {
    if (link === null) continue;
    const path = link.replace('{bob}', ids.bob);
    // Who is signed in is led away from it.
    if (path.startsWith('/signed-out')) await page.context().clearCookies();
    await page.goto(app.url + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    const reading = page.locator('.loading');
    while ((await reading.count()) > 0) await reading.first().waitFor({ state: 'detached' });
    for (const [width, size] of Object.entries(widths)) {
      await page.setViewportSize(size);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const name = `${link.replaceAll(/[^a-z]+/g, '-').replaceAll(/^-|-$/g, '') || 'start'}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: join(directory, name), fullPage: true });
      }
    }
  }
}

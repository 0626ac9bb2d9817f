/** The page that clients are downloaded from, in a browser: how one comes to it from the console, and for whom it is usable. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkPage, useConsole } from '../console/page.ts';
import { noBrowser } from '../support/browser.ts';
import { entry, offerRelease } from './release.ts';

const site = useConsole();

test('the console leads to the page of the clients, which everybody can use, in both schemes and on a narrow screen', {
  skip: noBrowser,
}, async () => {
  const platforms = ['linux-x64', 'darwin-arm64', 'win32-x64'];
  const files = platforms.map((platform) => ({
    platform,
    name: `andromeda-${platform}${platform === 'win32-x64' ? '.exe' : ''}`,
    content: Buffer.from(platform),
    tested: platform === 'linux-x64',
    note: 'Notarized by nobody.',
  }));
  const signature = entry('clients.json.sig', 'signature');
  offerRelease(join(site.app.test.dataDir, 'data'), '1.0.0', files, [signature]);
  await site.as('ada', async (page) => {
    const heading = page.getByRole('heading', { name: 'The client of Andromeda' });
    await page.getByRole('link', { name: 'download the client' }).click();
    await heading.waitFor();
    assert.equal(new URL(page.url()).pathname, '/download');
    for (const { name } of files) await page.getByRole('link', { name }).waitFor();
    await checkPage(page, '/download');
  });
});
